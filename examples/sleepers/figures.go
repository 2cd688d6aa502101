package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// mostMemory is what a sleeping run may cost in memory, in bytes. It is to cost none: this is what
// the measurement may be wrong by.
const mostMemory = 100

// figures is what came of one store.
type figures struct {
	store     string
	runs, due int
	rate      float64 // runs started in a second, each executed until it sleeps
	memory    float64 // bytes of the process for each sleeping run
	database  float64 // bytes of the database for each
	late      []time.Duration
}

// line is the last one that is printed for a store.
func (f *figures) line() string {
	return fmt.Sprintf("sleepers: store=%s runs=%d started_per_s=%.0f rss_per_run_b=%.0f db_per_run_b=%.0f late_p50_ms=%.1f late_p99_ms=%.1f",
		f.store, f.runs, f.rate, f.memory, f.database, milliseconds(quantile(f.late, 0.5)), milliseconds(quantile(f.late, 0.99)))
}

// verdict says what is wrong, all of it.
func (f *figures) verdict() error {
	var wrong []error
	if f.memory > mostMemory {
		wrong = append(wrong, fmt.Errorf("a sleeping run costs %.0f bytes of memory, at most %d are allowed", f.memory, mostMemory))
	}
	if len(f.late) != f.due {
		wrong = append(wrong, fmt.Errorf("%d runs went on, %d were due", len(f.late), f.due))
	}
	return errors.Join(wrong...)
}

// quantile is the shortest of the times that is not exceeded by the part q of them; zero for
// none.
func quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	rank := int(math.Ceil(q * float64(len(sorted)))) // from 1
	return sorted[max(rank, 1)-1]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
