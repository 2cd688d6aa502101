package ui

import (
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// However many streams there are, a second has four turns; runs that an event concerns are first, and nobody is left out.
func TestTurnsAreBounded(t *testing.T) {
	t.Parallel()
	h := newHub(nil)
	now := time.Now()
	runs := make(map[string]*watcher)
	for _, run := range []string{"", "", "", "", "", "", "a", "b", "c", "d", "e", "f"} {
		w := &watcher{run: run, changed: make(chan struct{}, 1), last: now}
		h.watchers[w], runs[run] = true, w
	}
	turns := func(reachable bool, events ...durable.Event) (told []*watcher) {
		t.Helper()
		h.tell(events, reachable, now)
		for w := range h.watchers {
			select {
			case <-w.changed:
				told = append(told, w)
			default:
			}
		}
		return told
	}
	if told := turns(true); len(told) != 0 {
		t.Errorf("%d streams are told at once after they began", len(told))
	}
	now = now.Add(time.Minute)
	if told := turns(false); len(told) != 0 {
		t.Errorf("%d streams are told while the database is away", len(told))
	}
	seen := make(map[*watcher]bool)
	for range 3 {
		told := turns(true)
		if len(told) != turnsPerTick {
			t.Errorf("%d streams have a turn", len(told))
		}
		for _, w := range told {
			seen[w] = true
		}
	}
	if len(seen) != len(h.watchers) {
		t.Errorf("%d of %d streams had a turn", len(seen), len(h.watchers))
	}
	now = now.Add(time.Minute)
	runs["f"].last = now
	turns(true)
	h.tell([]durable.Event{{RunID: "f"}}, true, now)
	if len(runs["f"].changed) != 1 {
		t.Error("the run with an event has no turn")
	}
	for range 5 {
		turns(true)
	}
	if told := turns(true); len(told) != 0 {
		t.Errorf("%d streams are told twice in a moment", len(told))
	}
}
