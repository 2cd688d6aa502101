package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Row 41: histories take longer to read than a claim, and one of them longer than a lease. They are
// claimed all the same, their leases are kept while they are read, and nothing runs again.
func TestRow41_HistoriesThatTakeLongerThanALease(t *testing.T) { // not beside others: leases of seconds must hold
	const (
		runs, chunk = 12, 128 << 10
		rate        = 2 << 20 // bytes a second
		lease       = 2 * time.Second
	)
	db := fresh(t, "postgres")
	l := newLedger(t)
	w := durable.Define("w", func(c *durable.Ctx, chunks int) (int, error) {
		total := 0
		for i := range chunks {
			name := fmt.Sprintf("s%02d", i)
			out, err := c.Step(name, func(ctx context.Context) (string, error) {
				l.did(ctx, c.ID(), name)
				return strings.Repeat("x", chunk), nil
			})
			if err != nil {
				return 0, err
			}
			total += len(out)
		}
		_, err := c.Receive[string]("go")
		return total, err
	})
	chunks := map[string]int{"long": 40} // 5 MB: two leases and a half alone
	for i := range runs {
		chunks[fmt.Sprint("r", i)] = 4
	}
	direct := db.openIn(t)
	client := engineOn(t, direct, durable.Config{})
	stop := runEngine(t, engineOn(t, direct, durable.Config{ParkAfter: time.Millisecond}, w))
	for id, n := range chunks {
		if _, err := w.Start(bounded(t), client, n, durable.ID(id)); err != nil {
			t.Fatal(err)
		}
	}
	for id := range chunks {
		await(t, id+" to wait", func() bool { return info(t, client, id).Status == durable.StatusWaiting })
	}
	stop()
	for id := range chunks {
		if err := client.Signal(bounded(t), id, "go", ""); err != nil {
			t.Fatal(err)
		}
	}
	p := newProxy(t, db.Where)
	p.brew(weather{Rate: rate})
	slow := database{Kind: db.Kind, Where: p.url(t, db.Where), Schema: db.Schema}.openIn(t)
	began := time.Now()
	runEngine(t, engineOn(t, slow, durable.Config{Lease: lease}, w))
	epochs := 0
	for id, n := range chunks {
		if v, err := result(t, client, w, id); v != n*chunk || err != nil {
			t.Errorf("%s: %d, %v; %+v", id, v, err, info(t, client, id))
		}
		at := info(t, client, id)
		if at.Crashes != 0 {
			t.Errorf("%s: %d crashes", id, at.Crashes)
		}
		epochs = max(epochs, at.Epoch)
	}
	took := time.Since(began)
	for step, n := range l.counts(t) {
		if n != 1 {
			t.Errorf("%s ran %d times", step, n)
		}
	}
	if took < 2*lease {
		t.Errorf("all was read in %v: the way was not slow", took)
	}
	t.Logf("runs=%d bytes=%d rate=%d/s lease=%v most_epochs=%d took=%v", len(chunks), (40+4*runs)*chunk, rate, lease, epochs, took.Round(time.Millisecond))
}
