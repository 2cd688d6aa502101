package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/testsize"
)

func init() {
	// verbs resumes or cancels one run after the other, each when another process is about
	// to do the other of the two. Of eight runs, one is resumed first for sure, and one is cancelled first.
	scenarios["verbs"] = func(ctx context.Context, j *job, s durable.Store) error {
		e, err := durable.New(s, durable.Config{})
		if err != nil {
			return err
		}
		if _, err := beginning(ctx, e, j.File); err != nil {
			return err
		}
		verb, other := e.Resume, "cancel"
		if j.Point == "cancel" {
			verb, other = e.Cancel, "resume"
		}
		for i := range j.Runs {
			if err := os.WriteFile(fmt.Sprint(j.File, j.Point, i), nil, 0o600); err != nil {
				return err
			}
			if err := awaitFile(fmt.Sprint(j.File, other, i)); err != nil {
				return err
			}
			if first := map[int]string{0: "resume", 4: "cancel"}[i%8]; first == other {
				if err := awaitFile(fmt.Sprint(j.File, other, i, " done")); err != nil {
					return err
				}
			} else {
				realtime.Pass(rand.N(6*time.Millisecond), "each order meets another moment")
			}
			if _, err := verb(ctx, fmt.Sprint(j.ID, i)); err == nil {
				say("done", i)
			} else if errors.Is(err, durable.ErrState) {
				say("refused", i)
			} else {
				say("error", err)
			}
			if err := os.WriteFile(fmt.Sprint(j.File, j.Point, i, " done"), nil, 0o600); err != nil {
				return err
			}
		}
		say("all")
		return nil
	}
}

// Row 30: one process resumes paused runs, another cancels them at the same moment. Never
// are both refused, and a cancel that was accepted holds.
func TestRow30_ResumeAgainstCancel(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		runs := testsize.Of(40, 15)
		l, file := newLedger(t), filepath.Join(t.TempDir(), "go")
		client := engineOn(t, db.openIn(t), durable.Config{})
		spawn(t, job{Scenario: "control", DB: db, Ledger: l})
		resumer := spawn(t, job{Scenario: "verbs", DB: db, ID: "brief", Runs: runs, Point: "resume", File: file})
		canceller := spawn(t, job{Scenario: "verbs", DB: db, ID: "brief", Runs: runs, Point: "cancel", File: file})
		var handles []*durable.Run[int]
		for i := range runs {
			handles = append(handles, start(t, client, brief(l), i, durable.ID(fmt.Sprint("brief", i))))
		}
		for _, run := range handles {
			await(t, "the wait", func() bool { return info(t, client, run.ID()).Status == durable.StatusWaiting })
			if _, err := client.Pause(bounded(t), run.ID()); err != nil {
				t.Fatal(err)
			}
			if err := client.Signal(bounded(t), run.ID(), "go", 1); err != nil {
				t.Fatal(err)
			}
		}
		resumer.expect("ready")
		canceller.expect("ready")
		begin(t, file)
		accepted := make(map[string]map[string]bool)
		for verb, p := range map[string]*process{"resume": resumer, "cancel": canceller} {
			p.expect("all")
			accepted[verb] = make(map[string]bool)
			for _, line := range p.seen {
				if i, ok := strings.CutPrefix(line, "done "); ok {
					accepted[verb]["brief"+i] = true
				}
			}
		}
		outcomes := make(map[string]int)
		for i, run := range handles {
			id := run.ID()
			resumed, cancelled := accepted["resume"][id], accepted["cancel"][id]
			out, err := run.Result(bounded(t))
			status, undone := info(t, client, id).Status, len(l.of(t, id, "undo"))
			switch {
			case cancelled && (!errors.Is(err, durable.ErrCancelled) || status != durable.StatusCancelled || undone != 1):
				t.Errorf("%s was cancelled, and is %s: %d, %v; undone %d times", id, status, out, err, undone)
			case !cancelled && (!resumed || err != nil || out != i || status != durable.StatusCompleted || undone != 0):
				t.Errorf("%s was not cancelled (resumed: %v), and is %s: %d, %v; undone %d times", id, resumed, status, out, err, undone)
			}
			outcomes[fmt.Sprintf("resumed=%v,cancelled=%v", resumed, cancelled)]++
		}
		if len(outcomes) < 2 {
			t.Errorf("no race: %v", outcomes)
		}
		t.Logf("runs=%d %v both_refused=0 cancelled_and_completed=0", runs, outcomes)
	})
}
