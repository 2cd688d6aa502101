package ui

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// However many streams there are, at most four pages have a round in a second; runs that have changed are first, and nobody is left out.
func TestRoundsAreBounded(t *testing.T) {
	t.Parallel()
	h := newStreamHub(nil, make(readSlots, maxConcurrentReads))
	now := time.Now()
	runs := make(map[string]*streamWatcher)
	for i, run := range []string{"", "", "", "", "", "", "a", "b", "c", "d", "e", "f"} {
		w := &streamWatcher{livePage: livePage{run: run, address: fmt.Sprint(i)}, rounds: make(chan string, 1)}
		h.watchers[w], runs[run] = true, w
		h.watchedPages[w.livePage] = &watchedPage{watchers: 1, loadedAt: now}
	}
	marks := map[string]string{"a": "0", "b": "0"}
	told := func(reachable bool, events ...durable.Event) (told []*streamWatcher) {
		t.Helper()
		h.startReloadRound(events, marks, reachable, now)
		for w := range h.watchers {
			select {
			case round := <-w.rounds:
				if want := fmt.Sprintf("%s-%d", h.rounds.process, h.rounds.last); round != want {
					t.Errorf("round %s is told as %s", want, round)
				}
				told = append(told, w)
			default:
			}
		}
		return told
	}
	if told := told(true); len(told) != 0 {
		t.Errorf("%d streams are told at once after they began", len(told))
	}
	marks["b"] = "1"
	if told := told(true); len(told) != 1 || told[0] != runs["b"] {
		t.Errorf("%d streams are told of the change of one run", len(told))
	}
	now = now.Add(time.Minute)
	if told := told(false); len(told) != 0 {
		t.Errorf("%d streams are told while the database is away", len(told))
	}
	seen := make(map[*streamWatcher]bool)
	for range 3 {
		told := told(true)
		if len(told) != pagesPerTick {
			t.Errorf("%d streams have a round", len(told))
		}
		for _, w := range told {
			seen[w] = true
		}
	}
	if len(seen) != len(h.watchers) {
		t.Errorf("%d of %d streams had a round", len(seen), len(h.watchers))
	}
	now = now.Add(time.Minute)
	h.watchedPages[runs["f"].livePage].loadedAt = now
	told(true)
	if told := told(true, durable.Event{RunID: "f"}); !slices.Contains(told, runs["f"]) {
		t.Error("the run with an event has no round")
	}
	for range 5 {
		told(true)
	}
	if told := told(true); len(told) != 0 {
		t.Errorf("%d streams are told twice in a moment", len(told))
	}
	second := &streamWatcher{livePage: runs["a"].livePage, rounds: make(chan string, 1)}
	h.watchers[second] = true
	marks["a"] = "1"
	if told := told(true); len(told) != 2 || told[0].run != "a" || told[1].run != "a" {
		t.Errorf("%d of the two streams of a page have their round together", len(told))
	}
}

// An overview has a round within a second after a change, and a list at most every five seconds, however often something changes.
func TestListsHaveRoundsEveryFiveSeconds(t *testing.T) {
	t.Parallel()
	h := newStreamHub(nil, make(readSlots, maxConcurrentReads))
	now := time.Now()
	rounds := make(map[string]int)
	pages := map[string]*streamWatcher{"/": {livePage: livePage{address: "/", isOverview: true}}, "/runs": {livePage: livePage{address: "/runs"}}}
	for _, w := range pages {
		w.rounds = make(chan string, 1)
		h.watchers[w] = true
		h.watchedPages[w.livePage] = &watchedPage{watchers: 1, loadedAt: now}
	}
	for range 20 {
		now = now.Add(livePeriod)
		h.startReloadRound([]durable.Event{{RunID: "a"}}, nil, true, now)
		for address, w := range pages {
			select {
			case <-w.rounds:
				rounds[address]++
			default:
			}
		}
	}
	if rounds["/"] != 20 || rounds["/runs"] != 4 {
		t.Errorf("in twenty seconds with a change in each, the rounds are %v", rounds)
	}
}
