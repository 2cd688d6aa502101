package durablecli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// With a long Config.Lease, heartbeats are rare. A worker counts as dead when its lease is over, not before.
func TestWorkerWithLongLease(t *testing.T) {
	t.Parallel()
	place := onFile(t)
	file := place.flags[1]
	e, _ := place.engineWith(t, durable.Config{Workflows: workflows, Lease: 2 * time.Minute})
	until(t, "the worker's first heartbeat", func() bool {
		workers, err := e.Workers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(workers) > 0
	})
	shows := func() (doctor, workers, page string) {
		s := newScreen(t, 120, 24)
		s.run(t, "workers", "--file", file)
		found := httptest.NewRecorder()
		ui.Handler(e).ServeHTTP(found, httptest.NewRequest(http.MethodGet, "/workers", nil))
		return command(t, "doctor", "--file", file).out, s.finish(), found.Body.String()
	}
	const red, late = "\x1b[31m", `class="when error"`
	executeSQLite(t, file, "UPDATE durable_worker SET heartbeat_at = heartbeat_at - 35*1000000, silent_at = silent_at - 35*1000000")
	if doctor, workers, page := shows(); strings.Contains(doctor, "dead") || strings.Contains(doctor, "no worker") || strings.Contains(workers, red) || !strings.Contains(workers, "35s ago") || strings.Contains(page, late) {
		t.Errorf("35 s after its heartbeat:\n%s%s%s", doctor, workers, page)
	}
	executeSQLite(t, file, "UPDATE durable_worker SET heartbeat_at = heartbeat_at - 95*1000000, silent_at = silent_at - 95*1000000")
	if doctor, workers, page := shows(); !strings.Contains(doctor, "dead workers") || !strings.Contains(workers, red) || !strings.Contains(page, late) {
		t.Errorf("130 s after its heartbeat:\n%s%s%s", doctor, workers, page)
	}
}
