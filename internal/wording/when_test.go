package wording

import (
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0µs", 850 * time.Millisecond: "850ms", 4250 * time.Millisecond: "4.2s", 10 * time.Second: "10s", 200 * time.Second: "3m20s", 20 * time.Minute: "20m",
		5 * time.Hour: "5h", 51 * time.Hour: "2d3h", 40 * 24 * time.Hour: "40d",
	} {
		if got := RoughDuration(d); got != want {
			t.Errorf("About(%v) = %q, want %q", d, got, want)
		}
	}
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"now": now, "today": now.Add(-12 * time.Hour), "yesterday": now.Add(-36 * time.Hour), "tomorrow": now.Add(12 * time.Hour), "90m": now.Add(-90 * time.Minute), "1d12h": now.Add(-36 * time.Hour),
		"2026-11-22": now.Add(-36 * time.Hour), "2026-11-22 12:00": now.Add(-24 * time.Hour), "2026-11-22T12:00:00+01:00": now.Add(-25 * time.Hour),
	} {
		if got, err := ParseTime(text, now); err != nil || !got.Equal(want) {
			t.Errorf("ParseTime(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for name, want := range map[string]string{"ID": "id", "RunID": "run_id", "DoneIDs": "done_ids", "CreatedAt": "created_at", "NoWorker": "no_worker", "LastLeaseLoss": "last_lease_loss"} {
		if got := snakeCase(name); got != want {
			t.Errorf("snakeCase(%q) = %q, want %q", name, got, want)
		}
	}
}
