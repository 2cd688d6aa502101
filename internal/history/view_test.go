package history

import (
	"testing"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

var (
	began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at    = func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
)

// TestStatusOf checks what users are shown for a checkpoint whose row does not say it.
func TestStatusOf(t *testing.T) {
	running := &store.Run{Status: store.Running}
	ended := &store.Run{Status: store.Cancelled, EndedAt: at(10)}
	open := func(name string) store.Step {
		return store.Step{Name: name, Kind: store.KindReceive, Status: store.StepStarted}
	}
	done := func(name string, status store.StepStatus, minutes int) store.Step {
		return store.Step{Name: name, Kind: store.KindStep, Status: status, EndedAt: at(minutes)}
	}
	sleep := func(until int) store.Step {
		return store.Step{Name: "nap", Kind: store.KindSleep, Status: store.StepCompleted, EndedAt: at(1), NextAt: at(until)}
	}
	twoItems := store.Step{Name: "map", Kind: store.KindMap, Status: store.StepCompleted, Output: []byte("2"), EndedAt: at(1)}
	item := func(key string, status store.StepStatus, minutes int) store.Step {
		return done("map"+naming.Separator+key, status, minutes)
	}
	choice := func(loser string, minutes int) store.Step {
		return store.Step{Name: "first", Kind: store.KindChoice, Status: store.StepCompleted, EndedAt: at(minutes), Output: []byte(`{"ended":["` + loser + `"]}`)}
	}
	const now = 30
	for name, c := range map[string]struct {
		run    *store.Run
		row    store.Step   // whose status is shown
		rest   []store.Step // of the run
		status string
		at     int // when it ended, in minutes; zero: it has not
	}{
		"completed":                           {running, done("a", store.StepCompleted, 5), nil, "completed", 5},
		"open":                                {running, open("a"), nil, "started", 0},
		"open in an ended run":                {ended, open("a"), nil, StatusCancelled, 10},
		"completed in an ended run":           {ended, done("a", store.StepCompleted, 5), nil, "completed", 5},
		"sleeping":                            {running, sleep(now + 1), nil, "started", 0},
		"slept":                               {running, sleep(now), nil, "completed", now},
		"slept before the run ended":          {ended, sleep(9), nil, "completed", 9},
		"sleeping when the run ended":         {ended, sleep(11), nil, StatusCancelled, 10},
		"open in a losing branch":             {running, open("b" + naming.Separator + "a"), []store.Step{choice("b", 7)}, StatusCancelled, 7},
		"open in a losing branch's scope":     {running, open("b" + naming.Separator + "c" + naming.Separator + "a"), []store.Step{choice("b", 8), choice("b/c", 7)}, StatusCancelled, 7},
		"open in another branch":              {running, open("c" + naming.Separator + "a"), []store.Step{choice("b", 7)}, "started", 0},
		"completed in a losing branch":        {running, done("b"+naming.Separator+"a", store.StepCompleted, 6), []store.Step{choice("b", 7)}, "completed", 6},
		"a choice that does not decode":       {running, open("b" + naming.Separator + "a"), []store.Step{{Kind: store.KindChoice, Status: store.StepCompleted, Output: []byte("{")}}, "started", 0},
		"a map with an open item":             {running, twoItems, []store.Step{item("1", store.StepCompleted, 4)}, "started", 0},
		"a map whose items are completed":     {running, twoItems, []store.Step{item("1", store.StepCompleted, 4), item("2", store.StepCompleted, 3)}, "completed", 4},
		"a map with a failed item":            {running, twoItems, []store.Step{item("1", store.StepFailed, 4)}, "failed", 4},
		"a map with an open item in an ended": {ended, twoItems, []store.Step{item("1", store.StepCompleted, 4)}, StatusCancelled, 10},
	} {
		steps := append([]store.Step{c.row}, c.rest...)
		v := NewView(c.run, steps, at(now))
		status, endedAt := v.StatusOf(&c.row)
		want := time.Time{}
		if c.at != 0 {
			want = at(c.at)
		}
		if status != c.status || !endedAt.Equal(want) {
			t.Errorf("%s: %s at %v, and not %s at %v", name, status, endedAt, c.status, want)
		}
		if waits := v.MayWait(&c.row); waits != (c.status != StatusCancelled) {
			t.Errorf("%s: may still be waited for: %v", name, waits)
		}
	}
}
