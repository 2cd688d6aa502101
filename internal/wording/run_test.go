package wording

import (
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// The reason of the person who has paused a held run is not shown as the reason of the hold.
func TestFactsOfAHeldRun(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	run := durable.RunInfo{Status: durable.StatusPaused, Diverged: true, Reason: "charge was a step", PausedAt: now.Add(-time.Minute)}
	held := WaitFacts(now, &run)
	run.Reason, run.PausedBy = "look", "ann"
	paused := WaitFacts(now, &run)
	if len(held) != 1 || held[0].Text != "1m ago, because the code does not fit its history: charge was a step" {
		t.Errorf("held: %+v", held)
	}
	if len(paused) != 2 || paused[0].Text != "1m ago, because the code does not fit its history" || paused[1] != (Fact{"Paused", "until it is resumed: look (by ann)", Warning}) {
		t.Errorf("paused: %+v", paused)
	}
}
