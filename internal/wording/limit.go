package wording

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/seed8ec063be/durable"
)

// LimitBounds returns the bounds of a limit, as in "concurrent 2, rate 10 per 1s".
func LimitBounds(b *durable.LimitBounds) string {
	var parts []string
	if b.Concurrent > 0 {
		parts = append(parts, fmt.Sprintf("concurrent %d", b.Concurrent))
	}
	if b.Rate > 0 {
		parts = append(parts, fmt.Sprintf("rate %d per %s", b.Rate, ShortDuration(b.Period)))
	}
	if b.Burst > 1 {
		parts = append(parts, fmt.Sprintf("burst %d", b.Burst))
	}
	return cmp.Or(strings.Join(parts, ", "), "no bounds")
}
