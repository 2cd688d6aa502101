package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// muteRepairs is a store that commits the next generations of runs that continue as new, and loses the first reply.
type muteRepairs struct {
	durable.Store
	lost  bool
	owned bool // the next generation belonged to the worker of the last one
}

func (s *muteRepairs) ApplyRepair(ctx context.Context, r *store.RepairRequest) error {
	err := s.Store.ApplyRepair(ctx, r)
	if err == nil && r.Outcome == store.Written && !s.lost {
		s.lost, s.owned = true, r.Runs[0].Owner.Valid
		return store.ErrUnavailable
	}
	return err
}

// If the next generation of a run is committed and the reply is lost, the run is released: it is executed long before its lease
// ends, and no crash is counted.
func TestAGenerationWithoutAReplyIsReleased(t *testing.T) {
	onStores(t, func(t *testing.T, inner durable.Store) {
		var l keyLedger
		w := countingTo(&l, 2)
		s := &muteRepairs{Store: inner}
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Lease: time.Hour})
		running(t, e)
		run := read(w.Start(within(t), e, 1, durable.ID("run")))(t)
		if got, err := run.Result(within(t)); err != nil || got != "counted to 2" {
			t.Fatalf("got %q, %v", got, err)
		}
		l.want(t, "in two generations", "count", "count#2")
		info := read(e.Get(within(t), "run"))(t)
		if info.Crashes != 0 || info.LastLeaseLoss != nil || info.Epoch != 3 {
			t.Errorf("%d crashes, loss %+v, epoch %d; want that the second of two generations was given back and claimed once", info.Crashes, info.LastLeaseLoss, info.Epoch)
		}
		if !s.owned {
			t.Error("the next generation was nobody's: the fault did not occur")
		}
	})
}
