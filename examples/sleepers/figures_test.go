package main

import (
	"testing"
	"time"
)

// TestVerdict checks that every violation ends the command with an error.
func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		f    figures
		good bool
	}{
		"as promised":          {figures{due: 2, memory: 99, late: make([]time.Duration, 2)}, true},
		"the process shrank":   {figures{due: 1, memory: -5, late: make([]time.Duration, 1)}, true},
		"too much memory":      {figures{due: 1, memory: 101, late: make([]time.Duration, 1)}, false},
		"one did not wake":     {figures{due: 2, late: make([]time.Duration, 1)}, false},
		"one woke that is not": {figures{due: 1, late: make([]time.Duration, 2)}, false},
	} {
		if err := c.f.verdict(); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestQuantile(t *testing.T) {
	times := make([]time.Duration, 100)
	for i := range times {
		times[i] = time.Duration(100 - i) // from the longest to the shortest
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := quantile(times, q); got != want {
			t.Errorf("the %v quantile of 1 to 100 is %d, want %d", q, got, want)
		}
	}
	if quantile(nil, 0.5) != 0 || quantile(times[:1], 0.5) != 100 {
		t.Error("none, or one")
	}
}
