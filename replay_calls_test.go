package durable_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// everyCall returns functions that together use each method of a Ctx and of its handles, and each kind of option that a call has. All
// return after a moment. quick is a workflow that returns at once; fetch returns what it receives as "go on"; answer signals "answer" to its input.
func everyCall(s durable.Store, quick, fetch *durable.Workflow[int, int], answer *durable.Workflow[string, int]) map[string]func(*durable.Ctx) error {
	limit := durable.NewLimit("everything", durable.Concurrent(5))
	return map[string]func(*durable.Ctx) error{
		"facts": func(c *durable.Ctx) error {
			c.Logger().With("a", 1).WithGroup("g").Info("line", "replaying", c.Replaying())
			_, _ = c.Deadline()
			return c.Do(c.ID()+" "+fmt.Sprint(len(c.RunID()), c.Value("key"), c.Err()), func(context.Context) error { return nil })
		},
		"steps": func(c *durable.Ctx) error {
			_, err := c.Step("limited", ones, limit.Permit(durable.LimitKey("a")), durable.Retry(durable.Fixed(time.Millisecond, 2)))
			_, once := c.Step("once", ones, durable.AtMostOnce(), durable.Verify(func(context.Context) (int, bool, error) { return 1, true, nil }))
			_, fails := c.Step("fails", func(context.Context) (int, error) { return 0, errDeclined })
			_, items := c.Map("items", []string{"a", "b"}, func(_ context.Context, s string) (string, error) { return s, nil }, durable.Key(func(s string) string { return s }))
			var tx error
			if _, isSQLite := s.(*sqlite.Store); isSQLite {
				_, tx = sqlite.Tx(c, "tx", func(context.Context, *sql.Tx) (int, error) { return 1, nil })
			} else {
				_, tx = postgres.Tx(c, "tx", func(context.Context, pgx.Tx) (int, error) { return 1, nil })
			}
			if fails == nil {
				err = errors.New("a failed step returns no error")
			}
			return errors.Join(err, once, items, tx)
		},
		"effects": func(c *durable.Ctx) error {
			id, err := c.Start("start", fetch, 1, durable.Singleton("effects"))
			_, now := c.Now("now")
			_, unique := c.UUID("uuid")
			tags := c.SetTags("tags", map[string]string{"a.b": "c"})
			return errors.Join(err, now, unique, tags, c.Signal("signal", id, "go on", 1))
		},
		"timers": func(c *durable.Ctx) error {
			return errors.Join(c.Sleep("sleep", time.Millisecond), c.SleepUntil("until", time.Unix(1, 0)))
		},
		"children": func(c *durable.Ctx) error {
			_, err := c.Child("child", quick, 1)
			first, failed := c.StartChild("first", fetch, 1)
			second, failed2 := c.StartChild("second", fetch, 1)
			if err := errors.Join(err, failed, failed2); err != nil {
				return err
			}
			sent, cancelled := first.Signal("signal", "go on", 1), second.Cancel("cancel", durable.Reason("enough"))
			_, err = first.Wait()
			if _, ended := second.Wait(); !errors.Is(ended, durable.ErrCancelled) {
				err = fmt.Errorf("the cancelled child %s: %w", second.ID(), ended)
			}
			return errors.Join(sent, cancelled, err)
		},
		"branches": func(c *durable.Ctx) error {
			branch := func(name string) *durable.Future[int] {
				return c.Go(name, func(c *durable.Ctx) (int, error) { return c.Step("step", ones) })
			}
			loser := c.Go("loser", func(c *durable.Ctx) (int, error) { return c.Child("child", fetch, 1) })
			_, _, err := durable.Any(c, "any", durable.CancelLosers, branch("a"), loser)
			_, quorum := durable.Quorum(c, "quorum", 2, durable.KeepLosers, branch("b"), branch("c"), branch("d"))
			_, all := durable.AllOrCancel(c, "all", branch("e"), branch("f"))
			_, each := durable.All(branch("g"), branch("h"))
			if _, lost := loser.Wait(); !errors.Is(lost, durable.ErrCancelled) {
				err = fmt.Errorf("the loser: %w", lost)
			}
			return errors.Join(err, quorum, all, each)
		},
		"callback": func(c *durable.Ctx) error {
			callback := c.Callback[int]("callback")
			if token := callback.Token(); token == "" || token != callback.Token() {
				return fmt.Errorf("the token %q", token)
			}
			_, err := callback.Wait(durable.Within(time.Millisecond), durable.Else(1))
			return err
		},
		"receives": func(c *durable.Ctx) error {
			_, late := c.Receive[int]("late", durable.Within(0))
			_, err := c.Receive[int]("own", durable.OnSignal("mine"), durable.Within(0), durable.ElseSignal(c.ID(), "mine", 1))
			_, asked := c.Receive[int]("answer", durable.Within(0), durable.ElseStart(answer, c.ID(), durable.Throttle("receives", 1, time.Hour)))
			if !errors.Is(late, durable.ErrTimeout) {
				err = fmt.Errorf("the late receive: %w", late)
			}
			return errors.Join(err, asked)
		},
		"patches": func(c *durable.Ctx) error {
			takes, err := c.Patched("new")
			if !takes || err != nil {
				return fmt.Errorf("takes the new path: %t, %w", takes, err)
			}
			return c.Compensate("undo", func(context.Context) error { return nil })
		},
	}
}

// A preflight and the replays of an export have all that the code of a workflow can use, and find that unchanged code fits.
func TestReplayHasEveryCall(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		quick := durable.Define("quick", func(*durable.Ctx, int) (int, error) { return 1, nil })
		fetch := durable.Define("fetch", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go on") })
		answer := durable.Define("answer", func(c *durable.Ctx, id string) (int, error) { return 1, c.Signal("signal", id, "answer", 1) })
		calls := everyCall(s, quick, fetch, answer)
		w := durable.Define("calls", func(c *durable.Ctx, name string) (string, error) {
			if err := calls[name](c); err != nil {
				return "", err
			}
			_, err := c.Receive[int]("go")
			return name, err
		})
		graph := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
			list := g.Step("list", func(context.Context, *durable.NodeInput) ([]int, error) { return []int{1, 2}, nil })
			each := g.Each("each", list, func(_ context.Context, n int, _ *durable.NodeInput) (int, error) { return n, nil })
			children := g.EachChild("children", list, quick)
			child := g.Child("child", quick, func(*durable.NodeInput) (int, error) { return 1, nil })
			wait := g.Receive[int]("go", durable.Needs(each, children, child))
			return g.Step("last", func(context.Context, *durable.NodeInput) (int, error) { return 1, nil }, durable.Needs(wait))
		})
		e := engineOn(t, s, w, graph, quick, fetch, answer)
		stop := running(t, e)
		start := func(name string) (err error) {
			if name == "graph" {
				_, err = graph.Start(within(t), e, 1, durable.ID(name))
			} else {
				_, err = w.Start(within(t), e, name, durable.ID(name))
			}
			return err
		}
		isGo := func(call string) bool { return strings.HasPrefix(call+"/", "go/") } // the node of the graph has its call in a branch
		ids := []string{"graph"}
		for name := range calls {
			ids = append(ids, name)
		}
		for _, id := range ids {
			if err := start(id); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range ids {
			await(t, id+" to receive go", func() bool {
				info := read(e.Get(within(t), id))(t)
				if info.Status == durable.StatusFailed || info.Diverged {
					t.Fatalf("%s: %s, %s", id, info.Err, info.Reason)
				}
				return slices.ContainsFunc(info.OpenCalls, func(c durable.OpenCall) bool { return isGo(c.Name) })
			})
		}
		stop()
		for _, name := range []string{"calls", "graph"} {
			found := read(engineOn(t, s, w, graph).Preflight(within(t), durable.Filter{Workflow: name}))(t)
			if found.Diverged+found.Failing+found.Unknown > 0 {
				t.Errorf("Preflight: %+v", found)
			}
			for _, r := range found.Runs {
				if len(r.Next) != 1 || !isGo(r.Next[0]) {
					t.Errorf("Preflight of %s: %+v", r.ID, r)
				}
			}
		}
		for _, id := range ids {
			document := read(e.Export(within(t), id, durable.DecodePayloads()))(t)
			got, err := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w, graph}}).ReplayExport(within(t), document)
			if err != nil || got.Diverged || got.Err != "" || len(got.Next) != 1 || !isGo(got.Next[0]) {
				t.Errorf("ReplayExport of %s: %+v, %v", id, got, err)
			}
			code := durable.Definition(w)
			if id == "graph" {
				code = graph
			}
			if got := durabletest.Replay(t, code, document); got.Diverged || got.Err != "" {
				t.Errorf("Replay of %s: %+v", id, got)
			}
		}
		stop = running(t, engineOn(t, s, w, graph, quick, fetch, answer))
		for _, id := range ids {
			signal(t, e, id, "go", 1)
			awaitStatus(t, e, id, durable.StatusCompleted)
		}
		stop()
		for _, id := range ids {
			if code := durable.Definition(w); id == "graph" {
				replaysAs(t, s, id, graph, "")
			} else {
				replaysAs(t, s, id, code, "")
			}
		}
	})
}

// A receive whose time was over cancels or expires the run in a preflight as it did before, and nothing is written.
func TestReplayOfARunThatItsReceiveEnded(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		for name, ends := range map[string]durable.ReceiveOption{"cancel": durable.ElseCancel(), "expire": durable.ElseExpire()} {
			w := durable.Define(name, func(c *durable.Ctx, _ int) (int, error) {
				if err := c.Compensate("undo", func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
				return c.Go("branch", func(c *durable.Ctx) (int, error) {
					return c.Receive[int]("never", durable.Within(time.Millisecond), ends)
				}).Wait()
			})
			e := engineOn(t, s, w)
			if _, err := w.Call(within(t), e, 0, durable.ID(name)); err == nil {
				t.Errorf("%s: the run has completed", name)
			}
			replaysAs(t, s, name, w, "")
			fork := orFail(e.Fork(within(t), name, durable.FromEnd(), durable.NewID(name+" again")))(t)
			if found := read(e.Preflight(within(t), durable.Filter{Workflow: name}))(t); found.Fit != 1 {
				t.Errorf("Preflight of %s: %+v", name, found)
			}
			if got := read(e.Get(within(t), fork.ID))(t); got.Status != durable.StatusPending {
				t.Errorf("after its preflight, %s is %s", name, got.Status)
			}
		}
	})
}

// Patched in a branch that a choice has ended is cancelled in a replay as it was before, and returns false in a branch that had returned.
func TestReplayOfPatchedInAnEndedBranch(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		chosen := make(chan struct{})
		choose := sync.OnceFunc(func() { close(chosen) })
		define := func(isPatched bool) *durable.Workflow[int, string] {
			return durable.Define("patched", func(c *durable.Ctx, _ int) (string, error) {
				returned := c.Go("returned", func(c *durable.Ctx) (string, error) {
					if _, err := c.Step("step", ones); err != nil || !isPatched {
						return "old", err
					}
					takes, err := c.Patched("appended")
					if takes {
						return "new", err
					}
					return "old", err
				})
				if _, err := returned.Wait(); err != nil {
					return "", err
				}
				loser := c.Go("loser", func(c *durable.Ctx) (string, error) {
					if err := c.Do("step", func(context.Context) error { <-chosen; return nil }); err != nil {
						return "", err
					}
					takes, err := c.Patched("new")
					return fmt.Sprint(takes), err
				})
				winner := c.Go("winner", func(c *durable.Ctx) (string, error) {
					return "won", c.Do("step", func(context.Context) error { return nil })
				})
				if _, _, err := durable.Any(c, "first", durable.CancelLosers, winner, loser, returned); err != nil {
					return "", err
				}
				choose()
				value, _ := returned.Wait()
				lost, err := loser.Wait()
				if errors.Is(err, durable.ErrCancelled) {
					lost = "cancelled"
				}
				if err := c.Do(value+" "+lost, func(context.Context) error { return nil }); err != nil {
					return "", err
				}
				_, err = c.Receive[int]("go")
				return value + " " + lost, err
			})
		}
		w := define(false)
		e := engineOn(t, s, w)
		stop := running(t, e)
		run := read(w.Start(within(t), e, 0, durable.ID("run")))(t)
		awaitStatus(t, e, "run", durable.StatusWaiting)
		if found := read(e.Preflight(within(t), durable.Filter{}))(t); found.Fit != 1 {
			t.Errorf("Preflight: %+v", found)
		}
		signal(t, e, "run", "go", 1)
		if got, err := run.Result(within(t)); got != "old cancelled" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		stop()
		replaysAs(t, s, "run", w, "")
		replaysAs(t, s, "run", define(true), "")
	})
}
