package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed8ec063be/durable/internal/clock"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// Functions that do not return take a bounded time together, however many they are, and other functions are replayed all the same.
func TestPreflightOfManyBlockedFunctionsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		defer close(open)
		slow := func(s *Scope) {
			for i := range 40 {
				time.Sleep(blockedPause / 2)
				if err := s.ReserveName("step", fmt.Sprint(i), 0); err != nil {
					t.Error(err)
				}
			}
		}
		e := &Engine{cfg: Config{Lease: 10 * time.Second, Definitions: []*WorkflowDefinition{
			{Name: "blocks", CallFunction: func(*Scope, []byte) ([]byte, *record.Failure) { <-open; return nil, nil }},
			{Name: "slow", CallFunction: func(s *Scope, _ []byte) ([]byte, *record.Failure) { slow(s); return nil, nil }},
		}}}
		p, err := e.newPreflightReplayer(clock.Fixed(time.Now()))
		if err != nil {
			t.Fatal(err)
		}
		replay := func(workflow string) PreflightResult {
			return p.Replay(t.Context(), &store.Run{UUID: store.NewUUIDAt(1, time.Now()), Workflow: workflow, Status: store.Pending}, nil, false)
		}
		const runs = 100
		began := time.Now()
		for i := range runs {
			if got := replay("blocks"); !got.TimedOut || got.Took <= 0 || got.Took > maxPreflightTime {
				t.Fatalf("run %d: %+v", i, got)
			}
		}
		if took, most := time.Since(began), maxBlockedTime+maxPreflightTime+runs*blockedPause; took > most {
			t.Errorf("%d functions that block took %v together, want at most %v", runs, took, most)
		}
		if got := replay("slow"); got.TimedOut || !got.FunctionReturned {
			t.Errorf("a function that makes calls is given up: %+v", got)
		}
	})
}
