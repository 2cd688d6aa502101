package main

import (
	"fmt"
	"slices"

	"github.com/seed8ec063be/durable/bench/result"
)

// sizes are the sizes of the JSON that each step returns in mode payload, in bytes.
var sizes = []int{200, 4 << 10, 100 << 10}

// payloadCallers is the number of concurrent callers in mode payload.
const payloadCallers = 16

// payloads measures the default mode's ceiling and local path with larger results.
func (b *bench) payloads(at *site) error {
	usual := b.payload
	defer func() { b.payload = usual }()
	for _, size := range sizes {
		b.payload = size
		rows, err := b.compare(at, b.callerCount(payloadCallers), []string{pathCeiling, pathLocal})
		if err != nil {
			return fmt.Errorf("%d bytes: %w", size, err)
		}
		for _, r := range rows {
			r.Mode = "payload"
			rate := r.Get("steps_per_s")
			r.Figures = slices.Insert(r.Figures, 0,
				result.Figure{Name: "payload_bytes", Value: result.Number(size)},
				result.Figure{Name: "mb_per_s", Value: rate * result.Number(size) / 1e6})
			b.add(r)
		}
	}
	return nil
}
