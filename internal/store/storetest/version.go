package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var versions = []test{
	{"their order is that of their first report", versionOrder},
	{"a worker of the earlier version leaves runs to the later", versionNeverBackwards},
	{"a claim gives the run the worker's version", versionOfClaimedRun},
	{"a claim stops at a version that it does not know", versionArrives},
	{"pinned runs stay with their version", versionPinned},
	{"a held run gets the worker's version", versionOfHeldRun},
	{"a claim that changes the version of a run that was executed writes an event", versionEvents},
	{"old versions are forgotten", versionForgotten},
}

// report makes a worker of the version report it, for the workflow flow in all queues.
func (b *fixture) report(version string, at time.Time, queues ...string) store.KnownVersions {
	b.Helper()
	return b.reportFirstSeen(version, at, time.Time{}, queues...)
}

func (b *fixture) reportFirstSeen(version string, at, first time.Time, queues ...string) store.KnownVersions {
	b.Helper()
	known, err := b.store.RecordWorkerVersion(b.ctx, &store.WorkerVersionReport{Version: version, Now: at, Workflows: []string{"flow"}, Queues: queues, FirstSeen: []time.Time{first}})
	if err != nil {
		b.Fatal(err)
	}
	return known
}

// orderOf returns the versions in their order, each with its queue.
func orderOf(known store.KnownVersions) (names []string) {
	slices.SortFunc(known.Sightings, func(l, r store.VersionSighting) int { return l.FirstSeen.Compare(r.FirstSeen) })
	for _, s := range known.Sightings {
		names = append(names, s.Version+s.Queue)
	}
	return names
}

func versionOrder(b *fixture) {
	b.report("v9", b.now)
	b.report("v1", b.afterStart(-time.Hour)) // the clock has gone back
	b.report("", b.now)
	b.report(store.UnorderedVersionPrefix+"cafe", b.now)
	known := b.report("v2", b.afterStart(time.Second))
	if got := orderOf(known); !slices.Equal(got, []string{"v9", "v1", "v2"}) {
		b.Errorf("the order is %v", got)
	}
	if again := b.report("v9", b.afterStart(time.Hour)); again.Sightings == nil || !orderAndSeen(again, "v9", b.now, b.afterStart(time.Hour)) || !again.LatestArrival.After(known.LatestArrival) {
		b.Errorf("v9 again: %+v", again)
	}
	if still := b.report("v9", b.afterStart(time.Hour+30*time.Second)); !orderAndSeen(still, "v9", b.now, b.afterStart(time.Hour+30*time.Second)) || !still.LatestArrival.Equal(b.afterStart(time.Hour)) {
		b.Errorf("v9 still: %+v", still)
	}
	// A promoted standby had lost this version, which is older than all.
	if lost := b.reportFirstSeen("v0", b.afterStart(2*time.Hour), b.afterStart(-24*time.Hour)); orderOf(lost)[0] != "v0" {
		b.Errorf("restored: %+v", lost)
	}
	if one := b.report("v9", b.afterStart(2*time.Hour), "one", "two"); !orderAndSeen(one, "v9", b.now, b.afterStart(2*time.Hour)) {
		b.Errorf("two queues: %+v", one)
	}
	all, err := b.store.WorkflowVersions(b.ctx, []string{"flow", "other"})
	if err != nil || len(all.Sightings) != 6 {
		b.Errorf("all: %+v, %v", all, err)
	}
	if none, err := b.store.WorkflowVersions(b.ctx, []string{"other"}); err != nil || len(none.Sightings) != 0 || !none.LatestArrival.Equal(all.LatestArrival) {
		b.Errorf("none: %+v, %v", none, err)
	}
}

// orderAndSeen reports whether the version was first seen at first in all its rows, and last at last in one of them.
func orderAndSeen(known store.KnownVersions, version string, first, last time.Time) bool {
	seen := false
	for _, s := range known.Sightings {
		if s.Version != version {
			continue
		}
		if !s.FirstSeen.Equal(first) {
			return false
		}
		seen = seen || s.LastSeen.Equal(last)
	}
	return seen
}

// ofVersion commits and returns a due run of a version.
func (b *fixture) ofVersion(version string) store.Run {
	b.Helper()
	r := b.newPendingRun("", b.now)
	r.Version = version
	wantOutcome(b, "start", b.commitStart(r).Outcome, store.Written)
	return r
}

// claimAs claims as a worker of the version, at the time.
func (b *fixture) claimAs(version string, at time.Time, pinned store.PinnedWorkflows) []string {
	b.Helper()
	known, err := b.store.WorkflowVersions(b.ctx, []string{"flow"})
	if err != nil {
		b.Fatal(err)
	}
	q := b.query(at)
	q.Limit, q.Versions = 10, store.NewVersionClaimRules(version, known, pinned, at)
	claims := b.claim(q)
	if claims.HasNewVersions {
		b.Error("a new version, though none has arrived")
	}
	var all []string
	for _, c := range claims.Runs {
		if row := b.row(c.Run.UUID); row.Version != c.Run.Version {
			b.Errorf("the row has the version %q, and the claim %q", row.Version, c.Run.Version)
		}
		all = append(all, c.Run.Version)
	}
	slices.Sort(all)
	return all
}

func (b *fixture) wantClaimed(what string, got []string, want ...string) {
	b.Helper()
	if !slices.Equal(got, want) {
		b.Errorf("%s: claimed %q, want %q", what, got, want)
	}
}

func versionNeverBackwards(b *fixture) {
	for i, v := range []string{"v1", "v2", "v3"} {
		b.report(v, b.afterStart(time.Duration(i-10)*time.Second))
		b.ofVersion(v)
	}
	b.ofVersion("unknown")
	b.ofVersion("")
	b.wantClaimed("v1", b.claimAs("v1", b.now, nil), "v1", "v1", "v1")
	b.wantClaimed("v1 again", b.claimAs("v1", b.now, nil))
	b.wantClaimed("v2", b.claimAs("v2", b.now, nil), "v2")
	b.wantClaimed("v2, while v3 lived less than a minute ago", b.claimAs("v2", b.afterStart(51*time.Second), nil))
	b.wantClaimed("v2, after the minute", b.claimAs("v2", b.afterStart(52*time.Second), nil), "v2")

	// A later version that lives keeps runs of the versions before it, too, but only in the queues that it serves.
	b.report("v4", b.afterStart(time.Minute), "elsewhere")
	b.ofVersion("v3")
	b.wantClaimed("v4 serves another queue", b.claimAs("v1", b.afterStart(time.Minute), nil), "v1")
	b.report("v4", b.afterStart(time.Minute), b.ofVersion("v3").Queue)
	b.wantClaimed("v4 lives", b.claimAs("v1", b.afterStart(time.Minute), nil))
	b.wantClaimed("v4 takes it", b.claimAs("v4", b.afterStart(time.Minute), nil), "v4")
}

func versionOfClaimedRun(b *fixture) {
	b.report("v1", b.now)
	r := b.ofVersion("v1")
	b.report("v2", b.now)
	b.wantClaimed("v2", b.claimAs("v2", b.now, nil), "v2")
	row := b.row(r.UUID)
	b.release(r.UUID, row.Epoch, b.now)
	b.wantClaimed("v1, when the run has left v2", b.claimAs("v1", b.now, nil))
	b.wantClaimed("a hash of the executable", b.claimAs(store.UnorderedVersionPrefix+"cafe", b.now, nil), "v2")
	b.release(r.UUID, b.row(r.UUID).Epoch, b.now)
	b.wantClaimed("no version", b.claimAs("", b.now, nil), "v2")

	named := b.ofVersion("")
	b.wantClaimed("a hash of the executable", b.claimAs(store.UnorderedVersionPrefix+"cafe", b.now, nil), store.UnorderedVersionPrefix+"cafe")
	b.release(named.UUID, b.row(named.UUID).Epoch, b.now)
	b.wantClaimed("another hash", b.claimAs(store.UnorderedVersionPrefix+"f00d", b.now, nil), store.UnorderedVersionPrefix+"f00d")
}

func versionArrives(b *fixture) {
	known := b.report("v1", b.now)
	q := b.query(b.now)
	q.Versions = store.NewVersionClaimRules("v1", known, nil, b.now)
	b.ofVersion("v1")
	b.report("v2", b.now)
	if got := b.claim(q); got.HasNewVersions || len(got.Runs) != 1 {
		b.Errorf("its own runs: %+v", got)
	}
	b.ofVersion("v2")
	if got := b.claim(q); !got.HasNewVersions || len(got.Runs) != 0 {
		b.Errorf("the claim has %v, %v", describeClaims(got.Runs), got.HasNewVersions)
	}
	b.wantClaimed("v2", b.claimAs("v2", b.now, nil), "v2")
}

func versionPinned(b *fixture) {
	pinned := store.PinnedWorkflows{"flow": time.Hour}
	b.report("v1", b.now)
	b.report("v2", b.now)
	first, second := b.ofVersion("v1"), b.ofVersion("v2")
	none := b.ofVersion("")
	b.wantClaimed("v2", b.claimAs("v2", b.afterStart(59*time.Minute), pinned), "v2", "v2")
	if row := b.row(none.UUID); row.Version != "v2" {
		b.Errorf("the run without a version has %q", row.Version)
	}
	b.release(second.UUID, b.row(second.UUID).Epoch, b.now)
	b.wantClaimed("a hash of the executable", b.claimAs(store.UnorderedVersionPrefix+"cafe", b.afterStart(59*time.Minute), pinned))
	b.wantClaimed("v1", b.claimAs("v1", b.afterStart(59*time.Minute), pinned), "v1")
	b.release(first.UUID, b.row(first.UUID).Epoch, b.now)
	b.wantClaimed("v3, after the grace period", b.claimAs("v3", b.afterStart(time.Hour), pinned), "v3", "v3")
	if row := b.row(first.UUID); row.Version != "v3" {
		b.Errorf("the run of v1 has %q", row.Version)
	}
	b.report("v3", b.afterStart(time.Hour))
	b.release(first.UUID, b.row(first.UUID).Epoch, b.now)
	b.wantClaimed("v2, after v3 has claimed the run", b.claimAs("v2", b.afterStart(time.Hour), pinned))

	client := b.ofVersion("web")
	b.wantClaimed("v2, a run of a client", b.claimAs("v2", b.afterStart(time.Hour), pinned), "v2")
	b.report("v2", b.afterStart(time.Hour))
	b.release(client.UUID, b.row(client.UUID).Epoch, b.now)
	b.wantClaimed("v3, after v2 has claimed the run of the client", b.claimAs("v3", b.afterStart(time.Hour), pinned), "v3")
	b.wantClaimed("v2, the run of the client", b.claimAs("v2", b.afterStart(time.Hour), pinned), "v2")
}

func versionOfHeldRun(b *fixture) {
	known := b.report("v1", b.now)
	r := b.commitRunningRun("")
	b.holdForDrift(r.UUID, r.Epoch, "v2")
	q := b.query(b.afterStart(time.Minute))
	q.Versions = store.NewVersionClaimRules("v1", known, nil, b.now)
	before := b.row(r.UUID)
	other := before
	other.Queue = "moved"
	if got, err := b.store.ClaimRunHeldForDrift(b.ctx, &other, "", q); got != nil || err != nil {
		b.Errorf("a run that was moved: %v, %v", got, err)
	}
	if got, err := b.store.ClaimRunHeldForDrift(b.ctx, &before, "", q); err != nil || got == nil || got.Version != "v1" {
		b.Fatalf("got %+v, %v", got, err)
	}
	b.report("v2", b.now)
	b.release(r.UUID, b.row(r.UUID).Epoch, b.now)
	b.wantClaimed("in its lane", b.claimAs("v1", b.now, nil), "v1")
}

func versionForgotten(b *fixture) {
	b.report("v1", b.now)
	known := b.report("v2", b.afterStart(store.VersionRetention))
	if got := orderOf(known); !slices.Equal(got, []string{"v1", "v2"}) {
		b.Errorf("after the time: %v", got)
	}
	known = b.report("v2", b.afterStart(store.VersionRetention+time.Second))
	if got := orderOf(known); !slices.Equal(got, []string{"v2"}) {
		b.Error(fmt.Sprint("after more than the time: ", got))
	}
}

// release makes a run that was claimed due again.
func (b *fixture) release(run uuid.UUID, e store.Epoch, at time.Time) {
	b.Helper()
	w := &store.OwnershipEnd{UUID: run, Epoch: e, Status: store.Pending, WakeAt: at, Now: at}
	b.commit(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{w}})
	wantOutcome(b, "the release", w.Outcome, store.Written)
}
