package store

import (
	"slices"
	"testing"
)

func TestRotateLanesTurnsEachPriorityByItself(t *testing.T) {
	type lane struct {
		priority int16
		number   int
	}
	sorted := []lane{{2, 0}, {1, 0}, {1, 1}, {1, 2}, {0, 0}, {0, 1}}
	begins := make(map[lane]bool)
	for range 10_000 {
		lanes := slices.Clone(sorted)
		RotateLanesRandomly(lanes, func(l *lane) int16 { return l.priority })
		for at := 0; at < len(lanes); {
			first := lanes[at]
			begins[first] = true
			n := []int{2, 3, 1}[first.priority]
			for i, l := range lanes[at : at+n] {
				if want := (lane{first.priority, (first.number + i) % n}); l != want {
					t.Fatalf("%v: lane %d of priority %d is %v, want %v", lanes, i, first.priority, l, want)
				}
			}
			at += n
		}
		if !slices.IsSortedFunc(lanes, func(a, b lane) int { return int(b.priority) - int(a.priority) }) {
			t.Fatalf("%v: a lower priority comes first", lanes)
		}
	}
	if len(begins) != len(sorted) {
		t.Errorf("claims begin at %d of %d lanes", len(begins), len(sorted))
	}
	RotateLanesRandomly[lane](nil, nil)
}
