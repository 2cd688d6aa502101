package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// mostMemory is the highest memory cost of a sleeping run, in bytes, that the command accepts. A
// sleeping run should cost no memory: the limit allows for the error of the measurement.
const mostMemory = 100

// figures holds the results for one store.
type figures struct {
	store     string
	runs, due int
	rate      float64 // runs started per second; each was executed until it slept
	memory    float64 // bytes of the process per sleeping run
	database  float64 // bytes of the database per sleeping run
	late      []time.Duration
}

// line returns the last line that is printed for a store.
func (f *figures) line() string {
	return fmt.Sprintf("sleepers: store=%s runs=%d started_per_s=%.0f rss_per_run_b=%.0f db_per_run_b=%.0f late_p50_ms=%.1f late_p99_ms=%.1f",
		f.store, f.runs, f.rate, f.memory, f.database, milliseconds(quantile(f.late, 0.5)), milliseconds(quantile(f.late, 0.99)))
}

// verdict returns an error with everything that is wrong, or nil.
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

// quantile returns the shortest time that at least the fraction q of the times does not exceed, or
// zero if there are no times.
func quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	rank := int(math.Ceil(q * float64(len(sorted)))) // the first has rank 1
	return sorted[max(rank, 1)-1]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
