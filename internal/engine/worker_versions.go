package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/buildversion"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// A run does not go back to an earlier version of the code. If a version has started or executed a run, workers of a version that was
// first seen earlier do not claim it while a worker of the run's version or of a later one lives, and for store.VersionTakeoverDelay
// after that. Each worker records its version in the database when it begins, before it starts or claims a run, and then from time to
// time. It keeps the known versions of other workers as store.VersionClaimRules, and sends these rules with each claim. Before a
// claim takes runs of another version, the same statement checks whether a version has arrived that the rules do not contain. So a
// new version keeps its runs from its first run on.

// maxVersionRereadsPerClaim is how often in a row a claim reads the versions again because one has arrived.
const maxVersionRereadsPerClaim = 3

// maxVersionReportGap is the longest time between two reports of a worker for which the worker still trusts the report times of others.
// After a longer gap, it assumes that other workers could not report either.
const maxVersionReportGap = 4 * store.VersionReportInterval

// knownVersions is what a worker knows of the versions of its workflows.
type knownVersions struct {
	rules                   atomic.Pointer[store.VersionClaimRules]
	skippedReportWhileQuiet atomic.Bool // the worker has not reported its version, because it was quiet

	mu                 sync.Mutex // held while the worker reports its version
	firstSeen          map[string]time.Time
	reportedAt         time.Time
	rulesComputedAt    time.Time          // the time for which the rules tell which versions live
	reportsTrustedFrom time.Time          // until this time, rulesComputedAt does not advance, because perhaps no worker could report
	loggedTakeovers    map[[2]string]bool // the workflows and versions whose takeover was logged
}

// programVersion returns the version of the program: Config.Version, or the name of the build. If the name of the build contains a hash
// and no worker has begun yet, programVersion returns an empty text.
func (e *Engine) programVersion() string {
	if e.cfg.Version != "" {
		return e.cfg.Version
	}
	return buildversion.KnownName()
}

// programVersionIfOrdered returns the version of the program, or an empty text if it has no place in the order of versions.
func (e *Engine) programVersionIfOrdered() string { return versionIfOrdered(e.programVersion()) }

func versionIfOrdered(version string) string {
	if store.IsOrderedVersion(version) {
		return version
	}
	return ""
}

// reportVersionLoop reports the version from time to time, so that other workers know that it has a live worker.
func (w *worker) reportVersionLoop(ctx context.Context) {
	for wakeup.SleepCtx(ctx, min(w.e.cfg.Lease, store.VersionReportInterval)) {
		if err := w.reportAndReadVersions(ctx); err != nil {
			w.log.Debug("could not record the version of this worker", telemetry.KeyError, err)
		}
	}
}

// reportAndReadVersions records that a worker of this version lives, and reads the versions of its workflows. A quiet worker only
// reads: it claims no runs, so the runs of its version must not be reserved for it.
func (w *worker) reportAndReadVersions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.e.cfg.Lease/2)
	defer cancel()
	v := &w.knownVersions
	v.mu.Lock()
	defer v.mu.Unlock()
	now := w.e.clock.Now()
	own := w.e.programVersion()
	quiet, _ := w.quiet.get()
	report := store.WorkerVersionReport{Version: own, Now: now, Workflows: w.workflows, Queues: w.e.cfg.Queues, FirstSeen: make([]time.Time, len(w.workflows))}
	for i, workflow := range w.workflows {
		report.FirstSeen[i] = v.firstSeen[workflow]
	}
	if quiet {
		report.Version = ""
	}
	known, err := w.e.store.RecordWorkerVersion(ctx, &report)
	if err != nil {
		return err
	}
	v.skippedReportWhileQuiet.Store(quiet)
	v.firstSeen = make(map[string]time.Time)
	for _, s := range known.Sightings {
		if first, seen := v.firstSeen[s.Workflow]; s.Version == own && (!seen || s.FirstSeen.Before(first)) {
			v.firstSeen[s.Workflow] = s.FirstSeen
		}
	}
	if !v.reportedAt.IsZero() && now.Sub(v.reportedAt) > maxVersionReportGap {
		v.reportsTrustedFrom = now.Add(2 * store.VersionReportInterval) // the other workers can report before this time
	}
	if v.reportedAt = now; !now.Before(v.reportsTrustedFrom) {
		v.rulesComputedAt = now
	}
	rules := store.NewVersionClaimRules(own, known, w.e.pinnedWorkflows, v.rulesComputedAt)
	if !rules.ChangesAt.IsZero() && rules.ChangesAt.Before(v.reportsTrustedFrom) {
		rules.ChangesAt = v.reportsTrustedFrom
	}
	if before := v.rules.Swap(rules); before != nil && rules.Differs(before) {
		w.logVersionTakeovers(rules.VersionsReleasedSince(before))
		w.hintClaim()
	}
	return nil
}

// logVersionTakeovers logs, once for each workflow and version, that this worker executes runs of that version from now on.
func (w *worker) logVersionTakeovers(released []store.VersionSighting) {
	for _, s := range released {
		key := [2]string{s.Workflow, s.Version}
		if w.knownVersions.loggedTakeovers[key] {
			continue
		}
		if w.knownVersions.loggedTakeovers == nil {
			w.knownVersions.loggedTakeovers = make(map[[2]string]bool)
		}
		w.knownVersions.loggedTakeovers[key] = true
		w.log.Warn("no worker of a later version has reported for long enough; this worker executes its runs now",
			telemetry.KeyWorkflow, s.Workflow, telemetry.KeyVersion, s.Version, telemetry.KeySince, s.LastSeen)
	}
}

// versionClaimRules returns the rules for a claim at the time now. If runs of other versions may no longer be reserved, or if the worker
// was quiet and claims again, it first reports its version and reads the versions of others.
func (w *worker) versionClaimRules(ctx context.Context, now time.Time) (*store.VersionClaimRules, error) {
	rules := w.knownVersions.rules.Load()
	if rules != nil && !w.knownVersions.skippedReportWhileQuiet.Load() && (rules.ChangesAt.IsZero() || now.Before(rules.ChangesAt)) {
		return rules, nil
	}
	if err := w.reportAndReadVersions(ctx); err != nil {
		return nil, err
	}
	return w.knownVersions.rules.Load(), nil
}

// VersionWait explains why no worker claims a due run: workers of the run's version, or of a later version, are live or were
// live a short time ago, or the versions of all live workers have diverged on the run.
type VersionWait struct {
	RunVersion string
	Diverged   []string  // the versions that diverged on the run before another one continued it
	Until      time.Time // when other workers may claim the run, unless a worker of such a version reports again
}

// If no live worker claims a due run because of the run's version, VersionWait returns a description of this, and otherwise
// nil.
func (e *Engine) VersionWait(ctx context.Context, r *store.Run, now time.Time) (*VersionWait, error) {
	if r.Status.IsTerminal() || r.Status == store.Running || r.WakeAt.IsZero() || r.WakeAt.After(now) || !store.IsOrderedVersion(r.Version) {
		return nil, nil
	}
	live, err := e.liveWorkers(ctx)
	if err != nil {
		return nil, err
	}
	known, err := e.store.WorkflowVersions(ctx, []string{r.Workflow})
	if err != nil {
		return nil, err
	}
	divergences, err := e.store.Divergences(ctx, r.UUID)
	if err != nil {
		return nil, err
	}
	divergences = slices.DeleteFunc(divergences, func(d store.Divergence) bool { return d.ContinuedBy == "" }) // a resume lets every version try the run
	diverged := store.DivergedVersionsOf(divergences)
	var wait *VersionWait
	for i := range live {
		if o := &live[i]; o.State != store.WorkerRunning || o.Quiet || !o.Serves(r.Queue, r.Workflow) {
			continue
		}
		until, kept := store.NewVersionClaimRules(live[i].Version, known, e.pinnedWorkflows, now).ReservedUntil(r.Queue, r.Workflow, r.Version, diverged)
		if !kept {
			return nil, nil
		}
		if wait == nil || until.Before(wait.Until) {
			wait = &VersionWait{RunVersion: r.Version, Until: until}
		}
	}
	if wait != nil {
		for _, d := range divergences {
			wait.Diverged = append(wait.Diverged, d.Version)
		}
	}
	return wait, nil
}
