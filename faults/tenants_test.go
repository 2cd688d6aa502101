package faults

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
)

// tenantSchemas is how many schemas a process of the scenario tenants serves, with the connections of one store.
const tenantSchemas = 3

// openTenants opens the schemas of the tenants with the connections of a store. The last one to be closed closes these.
func openTenants(ctx context.Context, s durable.Store, prefix string) (tenants []durable.Store, err error) {
	for i := range tenantSchemas {
		tenant, err := s.(*postgres.Store).OpenSchema(ctx, fmt.Sprint(prefix, "_", i))
		if err != nil {
			return tenants, err
		}
		tenants = append(tenants, tenant)
	}
	return tenants, nil
}

func init() {
	// tenants executes a run of hold in each schema.
	scenarios["tenants"] = func(ctx context.Context, j *job, s durable.Store) error {
		tenants, err := openTenants(ctx, s, j.DB.Schema)
		if err != nil {
			return err
		}
		w := hold(j.Ledger, j.File)
		ended := make(chan error, tenantSchemas)
		for i, tenant := range tenants {
			defer tenant.Close()
			e, err := durable.New(tenant, durable.Config{Workflows: []durable.Definition{w}})
			if err != nil {
				return err
			}
			go func() { ended <- e.Run(ctx) }()
			if _, err := w.Start(ctx, e, 1, durable.ID(fmt.Sprint(j.ID, i))); err != nil {
				return err
			}
		}
		return <-ended
	}
}

// Row 59: a process that executes the runs of several schemas with the connections of one store is killed, and another such process
// takes over all of them, as fast as the runs of one schema.
func TestRow59_TakeoverOfManySchemas(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	t.Parallel()
	db, l, file := fresh(t, "postgres"), newLedger(t), filepath.Join(t.TempDir(), "never")
	tenants, err := openTenants(bounded(t), db.openIn(t), db.Schema)
	must(t, "open the tenants", err)
	w := hold(l, file)
	var engines []*durable.Engine
	for _, tenant := range tenants {
		t.Cleanup(func() { must(t, "close", tenant.Close()) })
		engines = append(engines, engineOn(t, tenant, durable.Config{Name: "heir"}, w))
	}
	const kills = 2
	var worst time.Duration
	for kill := range kills {
		prefix := fmt.Sprint("k", kill, "-")
		p := spawn(t, job{Scenario: "tenants", DB: db, Ledger: l, ID: prefix, File: file})
		for range engines {
			p.expect("holding")
		}
		var stops []func()
		for i, e := range engines {
			await(t, "the started marker", func() bool { return history(t, e, fmt.Sprint(prefix, i))["hold"].Status == "started" })
			stops = append(stops, runEngine(t, e))
		}
		for _, e := range engines {
			settled(t, e, "heir", 2100*time.Millisecond)
		}
		killed, machine := time.Now(), measure(t, engines[0])
		p.kill()
		p.mustBeKilled(syscall.SIGKILL)
		for i, e := range engines {
			id := fmt.Sprint(prefix, i)
			if out, err := result(t, e, w, id); err != nil || out != "attempt 2" {
				t.Fatalf("%s: %q, %v", id, out, err)
			}
			did := l.of(t, id, "hold")
			took := did[len(did)-1].At.Sub(killed)
			if slack := machine.slack(); len(did) != 2 || took > time.Second+slack {
				t.Errorf("%s: executed %d times, taken over after %v, with %v for the machine's load", id, len(did), took, slack)
			}
			for _, step := range []string{"next", "last"} {
				if n := len(l.of(t, id, step)); n != 1 {
					t.Errorf("%s: the step %s was executed %d times", id, step, n)
				}
			}
			worst = max(worst, took)
		}
		for _, stop := range stops {
			stop()
		}
	}
	t.Logf("kills=%d schemas=%d worst=%v lease=10s", kills, tenantSchemas, worst.Round(time.Millisecond))
}
