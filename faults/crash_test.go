package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/testsize"
)

// five is a workflow of five steps, the third of which fails at its first attempt. It
// takes eight commits: the start, five steps, one backoff, the end.
func five(name string, l ledger) *durable.Workflow[int, string] {
	return durable.Define(name, func(c *durable.Ctx, in int) (string, error) {
		out := ""
		for i := range 5 {
			step := fmt.Sprintf("s%d", i+1)
			v, err := c.Step(step, func(ctx context.Context) (string, error) {
				l.did(ctx, c.ID(), step)
				if step == "s3" && durable.Attempt(ctx) == 1 {
					return "", errors.New("not yet")
				}
				return fmt.Sprint(step, "=", in), nil
			}, durable.Retry(durable.Fixed(5*time.Millisecond, 3)))
			if err != nil {
				return "", err
			}
			l.add(Entry{Run: c.ID(), Step: "ack " + step})
			out += v + " "
		}
		return out, nil
	})
}

const fiveResult = "s1=7 s2=7 s3=7 s4=7 s5=7 "

func init() {
	// five plays the five steps and dies at store call N: before the write, after the
	// commit, or while the reply is on its way. With the point "claim", a run that
	// is there already is claimed, and the process dies between the claim and its reply.
	scenarios["five"] = func(ctx context.Context, j *job, s durable.Store) error {
		fatal := func(n int64, here string) error {
			if n == j.N && here == j.Point {
				say("dying at", n, here)
				die()
			}
			return nil
		}
		f := &faulty{
			Store:        s,
			beforeCommit: func(n int64, _ *store.Batch) error { return fatal(n, "before") },
			afterCommit: func(n int64, _ *store.Batch) error {
				if n == j.N && j.Point == "reply" {
					say("dying at", n, j.Point)
					go die()
				}
				return fatal(n, "after")
			},
			afterClaim: func(n int64, _ *store.ClaimResult) error { return fatal(0, "claim") },
		}
		w := five(j.Workflow, j.Ledger)
		e, err := durable.New(f, durable.Config{Workflows: []durable.Definition{w}, Lease: j.Lease})
		if err != nil {
			return err
		}
		out, err := w.Call(ctx, e, 7, durable.ID(j.ID))
		say("result", out)
		return err
	}
}

// Row 1: a process dies at every call of the store that writes, at three points of it.
// Another one carries on to the same result, and runs no checkpointed step again.
func TestRow01_DeathAtEveryCommit(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.openIn(t)
		var mu sync.Mutex
		var deaths, kept, again int
		one := func(t *testing.T, n int64, point string) {
			id := fmt.Sprintf("%s-%d", point, n)
			l := newLedger(t)
			w := five("five "+id, l)
			e := engineOn(t, s, durable.Config{}, w)
			if point == "claim" { // somebody else has started it
				start(t, engineOn(t, s, durable.Config{}), w, 7, durable.ID(id))
			}
			p := spawn(t, job{Scenario: "five", DB: db, Ledger: l, ID: id, Workflow: "five " + id, N: n, Point: point})
			p.expect("dying at")
			p.mustBeKilled(syscall.SIGKILL)
			before, done := l.counts(t), map[string]bool{}
			for name, c := range history(t, e, id) {
				done[id+"/"+name] = c.Status == "completed"
			}
			for _, entry := range l.of(t, id, "") {
				if name, ack := strings.CutPrefix(entry.Step, "ack "); ack && !done[id+"/"+name] {
					t.Errorf("%s: %s was acknowledged and is lost", id, name)
				}
			}
			expire(t, db, id)
			out, err := w.Call(bounded(t), e, 7, durable.ID(id))
			if err != nil || out != fiveResult {
				t.Errorf("%s: %q, %v", id, out, err)
			}
			after := l.counts(t)
			mu.Lock()
			defer mu.Unlock()
			deaths++
			for i := range 5 {
				key := fmt.Sprintf("%s/s%d", id, i+1)
				if done[key] {
					kept++
					if after[key] != before[key] {
						t.Errorf("%s ran again after its checkpoint", key)
					}
				} else if before[key] > 0 {
					again += after[key] - before[key]
				}
				if after[key] == 0 || after[key] > 3 {
					t.Errorf("%s ran %d times", key, after[key])
				}
			}
		}
		t.Run("deaths", func(t *testing.T) { // returns when all of them have
			each := func(n int64, point string) {
				t.Run(fmt.Sprint(point, n), func(t *testing.T) {
					t.Parallel()
					one(t, n, point)
				})
			}
			points := []string{"before", "after", "reply"}
			for n := int64(1); n <= 8; n++ {
				for i, point := range points {
					if testsize.IsFull() || (int(n)+len(db.Kind))%len(points) == i { // else each call at one point, another one on each store
						each(n, point)
					}
				}
			}
			each(0, "claim")
		})
		t.Logf("deaths=%d checkpoints_kept=%d rerun_after_checkpoint=0 attempts_repeated=%d", deaths, kept, again)
		if deaths != testsize.Of(25, 9) || kept < testsize.Of(30, 11) {
			t.Errorf("%d deaths, %d checkpoints kept", deaths, kept)
		}
	})
}

// effect is a workflow of one step whose first attempt takes effect and then never
// returns; how says what it asks of the library.
func effect(how string, l ledger) *durable.Workflow[string, string] {
	return durable.Define("effect "+how, func(c *durable.Ctx, in string) (string, error) {
		var opts []durable.StepOption
		switch how {
		case "once":
			opts = append(opts, durable.AtMostOnce())
		case "verify":
			opts = append(opts, durable.Verify(func(context.Context) (string, bool, error) {
				text, err := os.ReadFile(string(l))
				return "found", strings.Contains(string(text), `"charge"`), err
			}))
		}
		return c.Step("charge", func(ctx context.Context) (string, error) {
			l.did(ctx, c.ID(), "charge")
			if durable.Attempt(ctx) == 1 {
				say("charging")
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "charged again", nil
		}, opts...)
	})
}

func init() {
	scenarios["effect"] = func(ctx context.Context, j *job, s durable.Store) error {
		w := effect(j.Point, j.Ledger)
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}, Lease: j.Lease, Grace: j.Grace})
		if err != nil {
			return err
		}
		_, err = w.Call(ctx, e, "x", durable.ID(j.ID))
		return err
	}
}

// Row 2: kill -9 in the middle of a side effect.
func TestRow02_KilledInTheMiddleOfAnEffect(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.openIn(t)
		l := newLedger(t)
		for _, how := range []string{"plain", "once", "verify"} {
			w := effect(how, l)
			e := engineOn(t, s, durable.Config{}, w)
			p := spawn(t, job{Scenario: "effect", DB: db, Ledger: l, ID: how, Point: how})
			p.expect("charging")
			await(t, "the started marker", func() bool { return history(t, e, how)["charge"].Status == "started" })
			p.kill()
			expire(t, db, how)
			out, err := w.Call(bounded(t), e, "x", durable.ID(how))
			did := l.of(t, how, "charge")
			switch how {
			case "plain":
				if err != nil || out != "charged again" || len(did) != 2 || did[1].Attempt != 2 || did[0].Key != did[1].Key || did[0].Key == "" || did[0].Pid == did[1].Pid {
					t.Errorf("plain: %q, %v, %+v", out, err, did)
				}
			case "once":
				mustFail(t, err, durable.ErrOutcomeUnknown, "charge")
				if len(did) != 1 {
					t.Errorf("at most once ran %d times", len(did))
				}
			case "verify":
				if err != nil || out != "found" || len(did) != 1 {
					t.Errorf("verify: %q, %v, %+v", out, err, did)
				}
			}
		}
		t.Logf("kills=3 plain_runs=%d same_key=true once_runs=%d verify_runs=%d",
			len(l.of(t, "plain", "")), len(l.of(t, "once", "")), len(l.of(t, "verify", "")))
	})
}
