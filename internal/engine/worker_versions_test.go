package engine

import (
	"context"
	"testing"
	"time"

	"github.com/seed8ec063be/durable/internal/clock"
	"github.com/seed8ec063be/durable/internal/store"
)

// reportedVersions is a store that notes the versions that workers report.
type reportedVersions struct {
	store.Store
	all []string
}

func (s *reportedVersions) RecordWorkerVersion(_ context.Context, r *store.WorkerVersionReport) (store.KnownVersions, error) {
	s.all = append(s.all, r.Version)
	return store.KnownVersions{Sightings: []store.VersionSighting{{Workflow: "w", Version: "v2", FirstSeen: r.Now, LastSeen: r.Now}}}, nil
}

// A quiet worker claims nothing, so it must not keep the runs of its version from others. Once it is resumed, it shows that it lives
// before it claims a run.
func TestAQuietWorkerReportsNoVersion(t *testing.T) {
	s := new(reportedVersions)
	w := &worker{e: &Engine{store: s, clock: new(clock.Estimate)}, workflows: []string{"w"}}
	w.e.clock.AddReading(time.Now(), time.Now())
	w.e.cfg.Version, w.e.cfg.Lease = "v2", time.Minute
	report := func(quiet bool) string {
		t.Helper()
		w.quiet.set(quiet, nil)
		s.all = nil
		if _, err := w.versionClaimRules(t.Context(), w.e.clock.Now()); err != nil {
			t.Fatal(err)
		}
		if len(s.all) == 0 {
			return "none"
		}
		return s.all[0]
	}
	if got := report(false); got != "v2" {
		t.Errorf("when it begins, it reports %q", got)
	}
	w.quiet.set(true, nil)
	if err := w.reportAndReadVersions(t.Context()); err != nil || s.all[len(s.all)-1] != "" {
		t.Errorf("when it is quiet, it reports %q, %v", s.all, err)
	}
	if first := w.knownVersions.firstSeen["w"]; first.IsZero() {
		t.Error("it has forgotten when its version was first seen")
	}
	if got := report(false); got != "v2" {
		t.Errorf("before its first claim after that, it reports %q", got)
	}
	if got := report(false); got != "none" {
		t.Errorf("before its next claim, it reports %q", got)
	}
}
