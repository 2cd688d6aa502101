package faults

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
)

// killer is a workflow whose second step ends its process, each time.
func killer(how string, l ledger) *durable.Workflow[int, int] {
	return durable.Define("killer", func(c *durable.Ctx, in int) (int, error) {
		if err := c.Do("fine", func(ctx context.Context) error {
			l.did(ctx, c.ID(), "fine")
			return nil
		}); err != nil {
			return 0, err
		}
		return 0, c.Do("kill", func(ctx context.Context) error {
			l.did(ctx, c.ID(), "kill")
			say("killing")
			if how, slow := strings.CutPrefix(how, "slow "); slow { // neighbours get somewhere first
				realtime.Pass(150*time.Millisecond, "neighbours make progress before the process ends")
				endProcess(how)
			}
			endProcess(how)
			return nil
		})
	})
}

// endProcess ends this process.
func endProcess(how string) {
	switch how {
	case "exit":
		os.Exit(3)
	case "fatal": // cannot be recovered, as concurrent map writes cannot
		var mu sync.Mutex
		mu.Unlock()
	case "stack":
		debug.SetMaxStack(1 << 20)
		var deeper func([]byte) int
		deeper = func(b []byte) int { return deeper(append(b, 1)) + 1 }
		deeper(nil)
	case "kill":
		die()
	}
}

// calm is a neighbour: a few short steps, one of them with a wait between attempts.
func calm(l ledger) *durable.Workflow[int, int] {
	return durable.Define("calm", func(c *durable.Ctx, in int) (int, error) {
		sum := 0
		for i := range 4 {
			name := fmt.Sprintf("n%d", i)
			v, err := c.Step(name, func(ctx context.Context) (int, error) {
				l.did(ctx, c.ID(), name)
				return in, nil
			})
			if err != nil {
				return 0, err
			}
			l.add(Entry{Run: c.ID(), Step: "ack " + name})
			sum += v
		}
		return sum, nil
	})
}

// countedClaims is a store that adds to the ledger how many crashes each claimed run counts, and whether the claimer could
// not renew its own leases at that time or shortly before. Such a claim may count no crash: a lease that
// ends in that time does not show that its owner died.
type countedClaims struct {
	durable.Store
	ledger ledger
}

func (s *countedClaims) Claim(ctx context.Context, q store.ClaimQuery) (store.ClaimResult, error) {
	claims, err := s.Store.Claim(ctx, q)
	for _, c := range claims.Runs {
		s.ledger.add(Entry{Run: c.Run.Name, Step: "claim", Key: fmt.Sprint(!q.OutageUntil.IsZero()), Attempt: int(c.Run.Crashes)})
	}
	return claims, err
}

// excused is how many claims of a run have counted no crash, since the claimer had no database when the lease ended. A
// claim that counts none without that reason is an error.
func excused(t *testing.T, l ledger, run string) (n int) {
	t.Helper()
	for i, claim := range l.of(t, run, "claim") {
		switch {
		case claim.Attempt == i-n:
		case claim.Attempt == i-n-1 && claim.Key == "true":
			n++
		default:
			t.Fatalf("claim %d of %s counts %d crashes, and %d claims were excused", i+1, run, claim.Attempt, n)
		}
	}
	return n
}

func init() {
	// work runs an engine with a killer and calm neighbours until it is ended.
	scenarios["work"] = func(ctx context.Context, j *job, s durable.Store) error {
		e, err := durable.New(&countedClaims{Store: s, ledger: j.Ledger}, durable.Config{
			Workflows: []durable.Definition{killer(j.Point, j.Ledger), calm(j.Ledger)}, Lease: j.Lease, MaxCrashes: j.Crashes, Poll: 50 * time.Millisecond,
		})
		if err != nil {
			return err
		}
		say("working")
		return e.Run(ctx)
	}
}

// Row 4: a step that ends its process, again and again, is set aside with a reason;
// the parent that restarts the worker sees its neighbours finish.
func TestRow04_StepThatKillsItsProcess(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		// What kills is not the store's affair: two of the four ways for each.
		ways := []string{"slow exit", "slow kill"}
		if db.Kind == "postgres" {
			ways = []string{"slow fatal", "slow stack"}
		}
		killAgainAndAgain(t, db, ways)
	})
}

// The same when the step ends the process at once, before its neighbours record
// anything: they are not to blame, and must finish too (I9).
func TestRow04_NeighboursOfAKiller(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) { killAgainAndAgain(t, db, []string{"exit"}) })
}

func killAgainAndAgain(t *testing.T, db database, ways []string) {
	for _, how := range ways {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			const crashes = 3
			db := fresh(t, db.Kind)
			l := newLedger(t)
			client := engineOn(t, db.openIn(t), durable.Config{})
			bad := start(t, client, killer(how, l), 1, durable.ID("bad"))
			var calms []*durable.Run[int]
			for i := range 10 {
				calms = append(calms, start(t, client, calm(l), i, durable.ID(fmt.Sprint("calm", i))))
			}
			restarts, stranded, why := 0, 0, ""
			for ; info(t, client, "bad").Status != durable.StatusPaused; restarts++ {
				if restarts > crashes+3+excused(t, l, "bad") {
					t.Fatalf("still %s after %d restarts", info(t, client, "bad").Status, restarts)
				}
				p := spawn(t, job{Scenario: "work", DB: db, Ledger: l, Point: how, Lease: 10 * time.Second, Crashes: crashes})
				p.expect("working")
				await(t, "the death of the worker, or the pause", func() bool {
					select {
					case <-p.ended:
						return true
					default:
						return info(t, client, "bad").Status == durable.StatusPaused
					}
				})
				select {
				case <-p.ended:
				default:
					for i, run := range calms {
						var at *durable.RunInfo
						await(t, "a neighbour's end", func() bool {
							at = info(t, client, run.ID())
							return at.Status == durable.StatusPaused || !at.EndedAt.IsZero()
						})
						if string(at.Output) != fmt.Sprint(4*i) {
							stranded, why = stranded+1, at.Reason
						}
					}
					p.signal(syscall.SIGTERM)
					p.mustEndWell()
				}
			}
			if stranded > 0 {
				t.Errorf("%d of %d neighbours of a killer are paused too: %s", stranded, len(calms), why)
			}
			paused := info(t, client, "bad")
			died, excused := len(l.of(t, "bad", "kill")), excused(t, l, "bad")
			// Fewer if a process lost its lease before the step began.
			if died == 0 || died > crashes+excused || !strings.Contains(paused.Reason, fmt.Sprint(crashes)) || paused.Crashes != crashes {
				t.Errorf("killed %d processes, at most %d, and one more for each of %d claims that were excused: %+v", died, crashes, excused, paused)
			}
			if n := len(l.of(t, "bad", "fine")); n != 1 {
				t.Errorf("the checkpointed step ran %d times", n)
			}
			if _, err := client.Get(bounded(t), bad.ID()); err != nil {
				t.Error(err)
			}
			t.Logf("%s: deaths=%d excused=%d starts=%d paused=%q neighbours=%d", how, died, excused, restarts, paused.Reason, len(calms))
		})
	}
}
