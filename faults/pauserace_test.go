package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
)

// flipped are the runs that are paused and resumed again and again.
var flipped = []string{"steps", "backoff", "tree"}

func init() {
	// flip pauses and resumes runs at random, some rounds long, each when its file is there.
	scenarios["flip"] = func(ctx context.Context, j *job, s durable.Store) error {
		e, err := durable.New(s, durable.Config{})
		if err != nil {
			return err
		}
		for round := range j.Runs {
			if _, err := beginning(ctx, e, fmt.Sprint(j.File, round)); err != nil {
				return err
			}
			for range j.N {
				target, verb, call := flipped[rand.IntN(len(flipped))], "pause", e.Pause
				if rand.IntN(2) == 0 {
					verb, call = "resume", e.Resume
				}
				began := time.Now()
				_, err := call(ctx, target)
				if err != nil && !errors.Is(err, durable.ErrState) {
					say("error", err)
				}
				say("flip", target, verb, began.UnixNano(), time.Now().UnixNano(), err == nil)
				realtime.Pass(rand.N(8*time.Millisecond), "each order meets another moment")
			}
			say("round")
		}
		return nil
	}
}

// flip is one pause or resume that was accepted.
type flip struct {
	verb         string
	began, ended int64
}

// Row 30: two processes pause and resume the same runs at random. The state that is left
// is that of the last verb that was accepted, for a tree in all of it.
func TestRow30_PausesAndResumesRace(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		const rounds, most, verbs = 3, 20, 25
		l, dir := newLedger(t), t.TempDir()
		end, gate := filepath.Join(dir, "end"), filepath.Join(dir, "go")
		client := engineOn(t, db.openIn(t), durable.Config{})
		twoWorkers(t, client, job{Scenario: "control", DB: db, Ledger: l, File: end})
		var ps []*process
		for range 2 {
			ps = append(ps, spawn(t, job{Scenario: "flip", DB: db, Runs: most, N: verbs, File: gate}))
		}
		var runs []*durable.Run[int]
		for _, how := range flipped {
			runs = append(runs, start(t, client, endless(l, end), mode{how, how, 2}, durable.ID(how)))
		}
		await(t, "the tree", func() bool {
			return live(t, client, "tree") == 7 && l.has(t, "backoff", "try") && l.has(t, "steps", "step")
		})
		accepted, overlapping, last := 0, 0, make(map[string]int)
		// The verbs are drawn: more rounds if both processes never met, or if the last verb was always the same.
		for round := 0; round < rounds || round < most && (overlapping == 0 || len(last) != 2); round++ {
			for _, p := range ps {
				p.expect("ready")
			}
			begin(t, fmt.Sprint(gate, round))
			flips := make(map[string][]flip)
			for _, p := range ps {
				p.expect("round")
				for _, line := range p.seen {
					var target string
					var f flip
					var ok bool
					if _, err := fmt.Sscan(strings.TrimPrefix(line, "flip "), &target, &f.verb, &f.began, &f.ended, &ok); err == nil && ok {
						flips[target] = append(flips[target], f)
					}
				}
				p.seen = nil
			}
			for target, all := range flips {
				accepted += len(all)
				can := make(map[string]bool) // verbs that may have been the last
				for _, f := range all {
					if !slices.ContainsFunc(all, func(g flip) bool { return g.began > f.ended }) {
						can[f.verb] = true
					}
					if slices.ContainsFunc(all, func(g flip) bool { return g != f && g.began < f.ended && f.began < g.ended }) {
						overlapping++
					}
				}
				now := "resume"
				if i := info(t, client, target); i.Status == durable.StatusPaused || i.Requested == "pause" {
					now = "pause"
				}
				if !can[now] {
					t.Errorf("%s: its state is that after a %s, the last verbs were %v", target, now, can)
				}
				last[now]++
				fits(t, client, l, target, now)
			}
		}
		if overlapping == 0 || len(last) != 2 {
			t.Errorf("no race: %d overlapping, last verbs %v", overlapping, last)
		}
		for _, how := range flipped {
			for _, verb := range []string{"pause", "resume"} {
				call := client.Pause
				if verb == "resume" {
					call = client.Resume
				}
				if _, err := call(bounded(t), how); err != nil {
					t.Fatal(err)
				}
				fits(t, client, l, how, verb)
			}
		}
		if err := os.WriteFile(end, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for i, run := range runs {
			if _, err := run.Result(bounded(t)); err != nil {
				t.Errorf("%s: %v", flipped[i], err)
			}
		}
		t.Logf("runs=%d verbs_accepted=%d overlapping=%d last_verbs=%v", len(flipped), accepted, overlapping, last)
	})
}

// fits waits until the state of a tree is that after the verb: all of it paused, or none
// of it, and its functions begin, or not.
func fits(t *testing.T, client *durable.Engine, l ledger, id, verb string) {
	t.Helper()
	await(t, id+" to fit its last verb, "+verb, func() bool {
		counts, err := client.TreeCounts(bounded(t), id)
		if err != nil {
			t.Fatal(err)
		}
		if verb == "pause" {
			return len(counts.Statuses) == 1 && counts.Statuses[durable.StatusPaused] > 0
		}
		return counts.Statuses[durable.StatusPaused] == 0
	})
	n := len(l.of(t, id, ""))
	if verb == "resume" {
		await(t, "something of "+id+" to begin", func() bool { return len(l.of(t, id, "")) > n })
		return
	}
	if within(150*time.Millisecond, func() bool { return len(l.of(t, id, "")) > n }) {
		t.Errorf("something of %s began while it was paused", id)
	}
}
