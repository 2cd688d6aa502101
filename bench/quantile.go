package main

import (
	"math"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/bench/result"
)

// quantile returns the smallest value that at least the fraction q of the values does not exceed.
// Without values it returns Unknown. It sorts the values.
func quantile(values []float64, q float64) result.Number {
	if len(values) == 0 {
		return result.Unknown
	}
	slices.Sort(values)
	rank := int(math.Ceil(q * float64(len(values)))) // the first has rank 1
	return result.Number(values[max(rank, 1)-1])
}

// median ignores unknown values. For an even number of values it returns the mean of the two in the
// middle.
func median(values []result.Number) result.Number {
	var known []float64
	for _, v := range values {
		if v.Known() {
			known = append(known, float64(v))
		}
	}
	n := len(known)
	if n == 0 {
		return result.Unknown
	}
	slices.Sort(known)
	return result.Number((known[(n-1)/2] + known[n/2]) / 2)
}

func milliseconds(times []time.Duration) []float64 {
	out := make([]float64, len(times))
	for i, t := range times {
		out[i] = inMS(t)
	}
	return out
}

func inMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
