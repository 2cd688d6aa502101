package wording

import (
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// The reason of the person who has paused a held run is not shown as the reason of the hold.
func TestFactsOfAHeldRun(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	run := durable.RunInfo{Status: durable.StatusPaused, Diverged: true, Reason: "the code does not fit its history: charge was a step", PausedAt: now.Add(-time.Minute)}
	held := WaitFacts(now, &run)
	run.Reason, run.PausedBy = "look", "ann"
	paused := WaitFacts(now, &run)
	if len(held) != 1 || held[0].Text != "1m ago: the code does not fit its history: charge was a step" {
		t.Errorf("held: %+v", held)
	}
	if len(paused) != 2 || paused[0].Text != "1m ago, because the code does not fit its history" || paused[1] != (Fact{"Paused", "until it is resumed: look (by ann)", Warning}) {
		t.Errorf("paused: %+v", paused)
	}
}

// A run that waits for its retry says so, with the time and the error.
func TestRunRetryWords(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	r := &durable.RunInfo{Status: durable.StatusWaiting, RetryWait: &durable.RetryWait{
		Until: now.Add(10 * time.Minute), Failures: 2, Err: &durable.RunError{Step: "charge", Type: "*bank.Error", Message: "no money"},
	}}
	if got, want := RunDetail(r), "waits for its retry: charge: no money"; got != want {
		t.Errorf("the detail is %q, want %q", got, want)
	}
	want := "due in 10m (" + ExactTime(r.RetryWait.Until) + "), after failure 2 in a row (*bank.Error): charge: no money"
	if facts := WaitFacts(now, r); len(facts) != 1 || facts[0].Text != want || facts[0].Tone != Bad {
		t.Errorf("the facts are %+v, want %q", facts, want)
	}
}
