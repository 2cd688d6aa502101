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
	read := func(path string) string {
		found := httptest.NewRecorder()
		ui.Handler(e).ServeHTTP(found, httptest.NewRequest(http.MethodGet, path, nil))
		return found.Body.String()
	}
	shows := func() (doctor, workers, page string) {
		s := newScreen(t, 120, 24)
		s.run(t, "workers", "--file", file)
		return command(t, "doctor", "--file", file).out, s.finish(), read("/workers")
	}
	// sums returns what is shown of all workers together.
	sums := func() (top, overview string) {
		return normal(command(t, "top", "--once", "--file", file).out), read("/")
	}
	const red, late = "\x1b[31m", `class="when error"`
	executeSQLite(t, file, "UPDATE durable_worker SET heartbeat_at = heartbeat_at - 35*1000000, silent_at = silent_at - 35*1000000")
	if doctor, workers, page := shows(); strings.Contains(doctor, "dead") || strings.Contains(doctor, "no worker") || strings.Contains(workers, red) || !strings.Contains(workers, "35s ago") || strings.Contains(page, late) {
		t.Errorf("35 s after its heartbeat:\n%s%s%s", doctor, workers, page)
	}
	if top, overview := sums(); !strings.Contains(top, "workers  1, 0 of 256 slots used\n") || !strings.Contains(top, "running  0/") || !strings.Contains(overview, "<dd>0 of 256</dd>") {
		t.Errorf("35 s after its heartbeat:\n%s%s", top, overview)
	}
	executeSQLite(t, file, "UPDATE durable_worker SET heartbeat_at = heartbeat_at - 95*1000000, silent_at = silent_at - 95*1000000")
	if doctor, workers, page := shows(); !strings.Contains(doctor, "dead workers") || !strings.Contains(workers, red) || !strings.Contains(page, late) {
		t.Errorf("130 s after its heartbeat:\n%s%s%s", doctor, workers, page)
	}
	_, workers, page := shows()
	top, overview := sums()
	if strings.Contains(workers+page, "running") || strings.Contains(top, "running  0/") || !strings.Contains(workers, "dead") || !strings.Contains(page, "<td>dead</td>") || !strings.Contains(top, "workers  0, 0 of 0 slots used, 1 dead\n") {
		t.Errorf("a dead worker is shown as a live one:\n%s%s%s", workers, page, top)
	}
	if !strings.Contains(overview, "<dd>0 of 0</dd>") || !strings.Contains(overview, "1 dead") || !strings.Contains(overview, "No worker lives") {
		t.Errorf("the overview counts a dead worker:\n%s", overview)
	}
}
