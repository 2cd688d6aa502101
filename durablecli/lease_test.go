package durablecli_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
	"github.com/seed8ec063be/durable/ui"
)

// With a long Config.Lease, heartbeats are rare. A worker counts as dead when its lease is over, not before.
func TestWorkerWithLongLease(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "lease.db")
	store, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	e, err := durable.New(store, durable.Config{Workflows: workflows, Lease: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, store.Close()); err != nil {
			t.Error(err)
		}
	})
	for workers := []durable.WorkerInfo(nil); len(workers) == 0; runtime.Gosched() {
		if workers, err = e.Workers(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
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
