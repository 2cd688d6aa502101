package faults

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/realtime"
)

// standbyOf is a server that streams from another one, for the length of a test.
func standbyOf(t testing.TB, primary *pgtest.Server, name string) *pgtest.Server {
	t.Helper()
	s, err := primary.Standby(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// must fails the test if a step of its own making did not work.
func must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// journalled keeps what is logged.
type journalled struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *journalled) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// with are the lines that hold all of the words.
func (l *journalled) with(words ...string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			lines = append(lines, line)
		}
	}
	return lines
}

func (l *journalled) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// acknowledged counts what was acknowledged.
func acknowledged(t testing.TB, l ledger) (n int) {
	t.Helper()
	for _, e := range l.read(t) {
		if strings.HasPrefix(e.Step, "ack ") {
			n++
		}
	}
	return n
}

// Row 39: the primary stands still (its machine hangs: connections are accepted, and nothing is ever
// said), and the URL names it and its synchronous standby. The log tells which host does not
// answer; within two seconds of the promotion work goes on.
func TestRow39_FrozenPrimaryOfSeveralHosts(t *testing.T) { // alone: it measures a time
	const runs, steps = 8, 400
	primary := ownServer(t)
	standby := standbyOf(t, primary, "second")
	must(t, "wait for the standby", primary.RequireSynchronous(bounded(t), "second"))
	db := database{Kind: "postgres", Where: pgtest.Hosts(primary, standby), Schema: "s"}
	l, logged := newLedger(t), &journalled{}
	w := steady(l, steps, 10*time.Millisecond)
	e := engineOn(t, db.openIn(t), durable.Config{Lease: 6 * time.Second, Logger: logged.logger()}, w)
	stop := runEngine(t, e)
	for i := range runs {
		start(t, e, w, i, durable.ID(fmt.Sprint("r", i)))
	}
	await(t, "steps", func() bool { return acknowledged(t, l) > 5*runs })

	const deadline = "context deadline exceeded"
	slow := len(logged.with(deadline))   // the primary was slow, not frozen
	leases := make(map[string]time.Time) // at least until when
	for i := range runs {
		id := fmt.Sprint("r", i)
		leases[id] = info(t, e, id).WakeAt
	}
	must(t, "freeze", primary.Freeze())
	frozen := time.Now()
	await(t, "the log to name the host that does not reply", func() bool { return len(logged.with(primary.Addr(), "does not reply")) > 0 })
	still := acknowledged(t, l)
	realtime.Pass(200*time.Millisecond, "a frozen server acknowledges nothing, and nothing tells so")
	if now := acknowledged(t, l); now != still {
		t.Fatalf("%d steps were acknowledged by a frozen primary", now-still)
	}
	for _, line := range logged.with(deadline)[slow:] {
		if strings.Contains(line, `deadline exceeded"`) {
			t.Errorf("the log tells no cause: %s", line)
		}
	}
	stood := time.Since(frozen)
	must(t, "promote", standby.Promote(bounded(t)))
	promoted, machine := time.Now(), measure(t, engineOn(t, database{Kind: "postgres", Where: standby.URL(), Schema: "s"}.openIn(t), durable.Config{}))
	await(t, "work to go on", func() bool { return acknowledged(t, l) > still+runs })
	went := time.Now()
	took := went.Sub(promoted)
	if slack := machine.slack(); took > 2*time.Second+slack {
		t.Errorf("work went on %v after the promotion, with %v for the machine's load", took, slack)
	}
	await(t, "the promotion to be told", func() bool { return len(logged.with("goes on from another point of its history")) > 0 })
	if lost := logged.with("lacks"); len(lost) > 0 {
		t.Errorf("a harmless promotion lost something: %q", lost)
	}
	for i := range runs {
		if at := info(t, e, fmt.Sprint("r", i)); at.Epoch != 1 && went.Before(leases[at.ID]) {
			t.Errorf("a harmless promotion took run %s from its worker: epoch %d", at.ID, at.Epoch)
		}
		must(t, "cancel", cancelRun(e, fmt.Sprint("r", i)))
	}
	stop()
	executed, repeated := judgeSteady(t, l)
	t.Logf("stood=%v went_on=%v executed=%d repeated=%d", stood.Round(time.Millisecond), took.Round(time.Millisecond), executed, repeated)
}

// cancelRun ends a run that is longer than its test.
func cancelRun(e *durable.Engine, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := e.Cancel(ctx, id)
	return err
}
