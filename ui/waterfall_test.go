package ui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// The waterfall shows how long a run waited to begin, the attempt that its process did not end, and when another worker took it over.
func TestQueueingAndTakeoverAreDrawn(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(1000, 0).Add(time.Duration(s) * time.Second) }
	died := &durable.FailedAttempt{Attempt: 1, Interrupted: true, WorkerID: "w-1", StartedAt: at(10)}
	run := &durable.RunInfo{
		CreatedAt: at(0), StartedAt: at(10), EndedAt: at(40), Epoch: 2, Status: durable.StatusCompleted,
		LastLeaseLoss: &durable.LeaseLoss{At: at(20), Worker: "w-1"},
	}
	call := durable.Checkpoint{Name: "charge", Kind: durable.KindStep, Status: durable.CheckpointCompleted, Attempts: 2, StartedAt: at(10), EndedAt: at(40), FirstFailure: died, LastFailure: died}
	w := newWaterfall(run, &durable.HistoryPage{Outline: []durable.Checkpoint{call}, Calls: []durable.SizedCheckpoint{{Checkpoint: call}}}, 0, at(100))
	share := func(b waterfallBar) [2]int { return [2]int{int(b.X + 0.5), int(b.X + b.W + 0.5)} }
	x := func(b waterfallBar) string { return b.Class }
	if len(w.Run.Bars) != 2 || x(w.Run.Bars[0]) != "queued" || x(w.Run.Bars[1]) != "life" || w.Run.Bars[0].W <= 3 || share(w.Run.Bars[1])[1] != width {
		t.Errorf("the run is drawn as %+v", w.Run.Bars)
	}
	for _, want := range []string{"waited 10s to begin", "claimed 2 times", "taken over from worker w-1"} {
		if !strings.Contains(w.Run.Result, want) {
			t.Errorf("the run is described as %q", w.Run.Result)
		}
	}
	bars := w.Rows[0].Bars
	if got := []string{x(bars[0]), x(bars[len(bars)-1])}; len(bars) != 2 || !slices.Equal(got, []string{"interrupted", "completed"}) || !strings.Contains(bars[0].Title, "interrupted") {
		t.Fatalf("the step is drawn as %+v", bars)
	}
	if len(w.Taken) != 1 || share(bars[0])[1] != int(w.Taken[0].X+0.5) || share(bars[1])[0] != int(w.Taken[0].X+0.5) {
		t.Errorf("the takeover at %+v is not between %+v", w.Taken, bars)
	}

	run.StartedAt, run.EndedAt, run.LastLeaseLoss, run.Epoch, run.Status, run.PausedAt = time.Time{}, time.Time{}, nil, 0, durable.StatusPaused, at(50)
	w = newWaterfall(run, new(durable.HistoryPage), 0, at(100))
	if len(w.Run.Bars) != 2 || x(w.Run.Bars[0]) != "queued" || x(w.Run.Bars[1]) != "paused" || share(w.Run.Bars[1]) != [2]int{width / 2, width} || len(w.Taken) != 0 {
		t.Errorf("a run that was paused before it began is drawn as %+v", w.Run.Bars)
	}
}
