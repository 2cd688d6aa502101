package main

import (
	"cmp"
	"strings"
	"testing"
)

// What is used up first bounds a fleet.
func TestWhatBoundsAFleet(t *testing.T) {
	for _, c := range []struct {
		f     fleet
		bound string
	}{
		{fleet{groups: 1, workers: 1}, "the workers' processors"},
		{fleet{groups: 1, workers: 50}, "the servers' disks"},
		{fleet{groups: 1, workers: 51}, "connections, then the servers' disks"},
		{fleet{groups: 1, workers: 242}, "connections, then the workers' processors"},
		{fleet{groups: 1, workers: 50, cores: 2}, "the servers' processors"},
		{fleet{groups: 1, workers: 1_000}, "connections"},
		{fleet{groups: 100, workers: 10_000}, "connections, then the servers' disks"},
		{fleet{groups: 100, workers: 10_000, spread: true}, "connections"},
	} {
		c.f.slots, c.f.workerCores, c.f.connections, c.f.disk = 400, 2, 500, 250e6
		c.f.cores = cmp.Or(c.f.cores, 16)
		if got := c.f.compute().bound; got != c.bound {
			t.Errorf("%d workers, %d groups: bound by %q, want %q", c.f.workers, c.f.groups, got, c.bound)
		}
	}
	for _, p := range measured {
		if timeOf(p.slots) != p.seconds {
			t.Errorf("%v slots: %v s, measured were %v", p.slots, timeOf(p.slots), p.seconds)
		}
	}
	if mid := timeOf(250); mid <= 285e-6 || mid >= 387e-6 {
		t.Errorf("250 slots: %v s, which is not between the measured figures", mid)
	}
	var out strings.Builder
	if err := print(&out); err != nil || strings.Count(out.String(), "\n") != len(fleets)+1 {
		t.Errorf("the table is %v\n%s", err, &out)
	}
}
