package faults

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
)

// held is a workflow whose step waits for the end of its context, and notes when that
// came.
func held(l ledger) *durable.Workflow[int, int] {
	return durable.Define("held", func(c *durable.Ctx, _ int) (int, error) {
		return c.Step("held", func(ctx context.Context) (int, error) {
			l.did(ctx, c.ID(), "begins")
			<-ctx.Done()
			l.did(ctx, c.ID(), "ends")
			return 0, context.Cause(ctx)
		})
	})
}

// learning cancels runs one by one whose steps run in another process. It returns how long it took each time
// until the step's context ended, and how much longer than on an idle machine that may be.
func learning(t *testing.T, db database, lease time.Duration, asked int) (took []time.Duration, slack time.Duration) {
	t.Helper()
	l := newLedger(t)
	client := engineOn(t, db.openIn(t), durable.Config{})
	spawn(t, job{Scenario: "control", DB: db, Ledger: l, Lease: lease})
	for i := range asked {
		start(t, client, held(l), i, durable.ID(fmt.Sprint("held", i)))
	}
	await(t, "the steps", func() bool { return l.lines(t) == asked })
	machine := measure(t, client)
	for i := range asked {
		id := fmt.Sprint("held", i)
		began := time.Now()
		if _, err := client.Cancel(bounded(t), id); err != nil {
			t.Fatal(err)
		}
		await(t, "the end of the step's context", func() bool { return l.has(t, id, "ends") })
		took = append(took, l.of(t, id, "ends")[0].At.Sub(began))
		await(t, "the cancelled run", func() bool { return info(t, client, id).Status == durable.StatusCancelled })
	}
	slices.Sort(took)
	return took, machine.slack()
}

// Row 29: how soon a step in another process learns of a cancel.
func TestRow29_HowSoonAProcessLearns(t *testing.T) {
	onBothAlone(t, func(t *testing.T, db database) {
		const asked = 20
		took, slack := learning(t, db, 0, asked)
		if median := took[asked/2]; median > 100*time.Millisecond+slack {
			t.Errorf("a cancel reached the step after %v, with %v for the machine's load: %v", median, slack, took)
		}
		t.Logf("cancels=%d median=%v worst=%v", asked, took[asked/2].Round(100*time.Microsecond), took[asked-1].Round(100*time.Microsecond))
	})
}

// Row 17: through PgBouncer in transaction mode no notification arrives; a renewal of the
// leases tells, three times in a lease.
func TestRow17_ControlThroughTheBouncer(t *testing.T) {
	server, err := pgtest.Start(t.Context(), pgtest.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	const asked, lease = 10, time.Second
	const renewal = lease/3 + lease/3/8
	at := fmt.Sprintf("postgres://anybody@127.0.0.1:%d/postgres?sslmode=disable&default_query_exec_mode=cache_describe", bouncer(t, server))
	t.Run("transaction mode", func(t *testing.T) { // ends before the server does
		took, slack := learning(t, database{Kind: "postgres", Where: at, Schema: "bouncer_news"}, lease, asked)
		if worst := took[asked-1]; worst > renewal+reading+slack {
			t.Errorf("a cancel reached the step after %v, a renewal comes each %v, with %v for the machine's load: %v", worst, renewal, slack, took)
		}
		if took[asked/2] < 20*time.Millisecond {
			t.Errorf("notifications arrive, so this is no bouncer in transaction mode: %v", took)
		}
		t.Logf("cancels=%d lease=%v median=%v worst=%v", asked, lease, took[asked/2].Round(time.Millisecond), took[asked-1].Round(time.Millisecond))
	})
}
