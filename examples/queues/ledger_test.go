package main

import (
	"errors"
	"testing"
	"time"
)

func TestLedgerCounts(t *testing.T) {
	l := newLedger()
	start := time.Unix(0, 0)
	endA := l.begin("a", start, start.Add(300*time.Millisecond))
	endB := l.begin("b", start.Add(900*time.Millisecond), start.Add(900*time.Millisecond))
	l.begin("a", start.Add(time.Second), start.Add(time.Second))() // overlaps the first
	endA()
	endB()
	l.charge("1", "k")
	l.charge("1", "k")
	l.charge("2", "k1")
	l.charge("2", "k2")
	for run, at := range map[string]int{"x": 0, "y": 1, "z": 1, "w": 4} {
		l.tick(start.Add(time.Duration(at)*time.Second), run)
	}
	got := l.count()
	want := counts{
		Requests: 3, MaxConcurrent: 3, MaxPerSecond: 3, MaxSent: 2, Jitter: 300 * time.Millisecond, KeyOverlaps: 1, ChargedTwice: 1, Charged: 2, Fires: 3, Doubled: 1, Missed: 2,
		FirstTick: start.UTC(), LastTick: start.Add(4 * time.Second).UTC(),
	}
	if got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func TestVerdictNamesEachBrokenPromise(t *testing.T) {
	good := report{orders: 2, counts: counts{Charged: 2, MaxConcurrent: atOnce, MaxPerSecond: 62, MaxSent: 60, Jitter: 50 * time.Millisecond, Fires: 1}, urgent: 1, normal: 2}
	if err := good.verdict(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*report){
		"lost":       func(r *report) { r.counts.Charged-- },
		"twice":      func(r *report) { r.counts.ChargedTwice++ },
		"concurrent": func(r *report) { r.counts.MaxConcurrent++ },
		"sent":       func(r *report) { r.counts.MaxSent++ },
		"arrived":    func(r *report) { r.counts.MaxPerSecond++ },
		"jitter":     func(r *report) { r.counts.Jitter = 0 },
		"overlap":    func(r *report) { r.counts.KeyOverlaps++ },
		"doubled":    func(r *report) { r.counts.Doubled++ },
		"missed":     func(r *report) { r.counts.Missed++ },
		"urgent":     func(r *report) { r.urgent = 3 },
	} {
		r := good
		spoil(&r)
		if joined, ok := errors.AsType[interface {
			error
			Unwrap() []error
		}](r.verdict()); !ok || len(joined.Unwrap()) != 1 {
			t.Errorf("%s: %v", name, r.verdict())
		}
	}
}
