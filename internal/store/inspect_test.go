package store

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"
)

// The range of UUIDs has every run that the times of a filter select, and few others.
func TestUUIDRangeOfAFilter(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	of := func(after time.Duration) uuid.UUID { return NewUUIDAt(3, at.Add(after)) }
	for name, c := range map[string]struct {
		filter        Filter
		before        uuid.UUID
		in, below, up []time.Duration // UUIDs of these times are in the range, below it or after it
	}{
		"all":                          {in: []time.Duration{-1e5 * time.Hour, 0, 1e5 * time.Hour}},
		"before a UUID":                {before: of(0), in: []time.Duration{-time.Microsecond}, up: []time.Duration{time.Microsecond}},
		"created before":               {filter: Filter{CreatedBefore: at}, in: []time.Duration{-time.Hour, -1, 59 * time.Minute}, up: []time.Duration{2 * time.Hour}},
		"ended before":                 {filter: Filter{EndedBefore: at}, in: []time.Duration{-1e5 * time.Hour, 59 * time.Minute}, up: []time.Duration{2 * time.Hour}},
		"created after":                {filter: Filter{CreatedAfter: at}, in: []time.Duration{-59 * time.Minute, time.Hour}, below: []time.Duration{-2 * time.Hour}},
		"ended after":                  {filter: Filter{EndedAfter: at}, in: []time.Duration{-1e5 * time.Hour, 1e5 * time.Hour}},
		"created and before a UUID":    {filter: Filter{CreatedBefore: at}, before: of(-2 * time.Hour), in: []time.Duration{-3 * time.Hour}, up: []time.Duration{-time.Hour}},
		"created, and a UUID after it": {filter: Filter{CreatedBefore: at}, before: of(9 * time.Hour), in: []time.Duration{0}, up: []time.Duration{2 * time.Hour}},
	} {
		from, below := c.filter.UUIDRange(c.before)
		where := func(after time.Duration) int {
			switch id := of(after); {
			case bytes.Compare(id[:], from[:]) < 0:
				return -1
			case bytes.Compare(id[:], below[:]) >= 0:
				return 1
			}
			return 0
		}
		for want, times := range map[int][]time.Duration{-1: c.below, 0: c.in, 1: c.up} {
			for _, after := range times {
				if got := where(after); got != want {
					t.Errorf("%s: a UUID of the time %v is at %d of the range, want %d", name, after, got, want)
				}
			}
		}
	}
}
