package durable

import (
	"strings"
	"testing"
)

// BenchmarkRoundTrip encodes the result of a step and decodes it again, as the first execution does. In values of type any,
// numbers are decoded one by one.
func BenchmarkRoundTrip(b *testing.B) {
	type receipt struct {
		Number int    `json:"number"`
		Text   string `json:"text"`
	}
	b.Run("60 B", func(b *testing.B) { benchmarkRoundTrip(b, receipt{12345, strings.Repeat("x", 32)}) })
	b.Run("4 KB", func(b *testing.B) { benchmarkRoundTrip(b, receipt{12345, strings.Repeat("x", 4<<10)}) })
	b.Run("any", func(b *testing.B) {
		benchmarkRoundTrip[any](b, map[string]any{"number": 12345.0, "text": strings.Repeat("x", 32)})
	})
}

func benchmarkRoundTrip[T any](b *testing.B, v T) {
	b.ReportAllocs()
	for b.Loop() {
		text, _, err := encodeAndDecode(v, 1<<20)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(text)))
	}
}
