package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/polling"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// claimRecorder is a store that records the claims that it gets, and finds nothing due.
type claimRecorder struct {
	due
	store.SharedValues
	queues []store.QueueRow
	err    error
	got    []store.ClaimQuery
}

func (s *claimRecorder) QueueRows(context.Context) ([]store.QueueRow, error) { return s.queues, nil }

func (s *claimRecorder) Claim(_ context.Context, q store.ClaimQuery) (store.ClaimResult, error) {
	s.got = append(s.got, q)
	return store.ClaimResult{}, s.err
}

// newGroup returns the members of one group, with the given numbers of slots.
func newGroup(t *testing.T, s *claimRecorder, concurrency ...int) (members []*worker) {
	t.Helper()
	tel, err := telemetry.New(slog.New(slog.DiscardHandler), nil, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range concurrency {
		e := New(s, Config{Lease: time.Minute, Poll: time.Second, Concurrency: n, Telemetry: tel, Definitions: []*WorkflowDefinition{{Name: "w"}}})
		if err := e.clock.EnsureReading(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		w := newWorker(e)
		t.Cleanup(func() { w.endRunContexts(nil) })
		w.slots.Open()
		w.claimGroup.join(w)
		members = append(members, w)
	}
	return members
}

// claimOnce makes the first member claim once for all, with all free slots up to limit.
func claimOnce(t *testing.T, members []*worker, limit int) (slotCount int, err error) {
	t.Helper()
	pace := claimPace{limit: limit, isFull: true}
	slotCount, _, err = members[0].claimGroup.claimForMembers(members[0], &pace, 0)
	for _, m := range members {
		if n := m.slots.Counts().Taken; n != 0 {
			t.Errorf("%d slots are reserved after a claim that took nothing", n)
		}
	}
	return slotCount, err
}

// ownerCounts returns how often each of the members occurs among the owners.
func ownerCounts(q *store.ClaimQuery, members []*worker) (counts []int) {
	for _, m := range members {
		counts = append(counts, len(slices.DeleteFunc(slices.Clone(q.Owners), func(id uuid.UUID) bool { return id != m.id })))
	}
	return counts
}

func TestOneClaimRequestsTheFreeSlotsOfAllMembers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit, taken int // slots of the second member that are taken
		want         []int
	}{
		{limit: 100, want: []int{3, 5, 1}},
		{limit: 100, taken: 4, want: []int{3, 1, 1}},
		{limit: 3, want: []int{1, 1, 1}},
		{limit: 100, taken: 5, want: []int{3, 0, 1}},
	} {
		s := new(claimRecorder)
		members := newGroup(t, s, 3, 5, 1)
		taken := members[1].slots.Reserve(c.taken, 0, 0)
		pace := claimPace{limit: c.limit, isFull: true}
		n, _, err := members[0].claimGroup.claimForMembers(members[0], &pace, 0)
		taken.Release()
		if err != nil || len(s.got) != 1 {
			t.Fatalf("%+v: %d claims: %v", c, len(s.got), err)
		}
		if q := &s.got[0]; !slices.Equal(ownerCounts(q, members), c.want) || q.Limit != n || len(q.Owners) != n {
			t.Errorf("%+v: a claim of %d runs for %v", c, q.Limit, ownerCounts(q, members))
		}
	}
}

// A claim leaves slots to starts of the process while little is due, but not slots for which a member has admitted runs.
func TestAClaimOfAdmittedRunsTakesAllFreeSlots(t *testing.T) {
	t.Parallel()
	s := new(claimRecorder)
	members := newGroup(t, s, 16)
	g, taken := members[0].claimGroup, members[0].slots.Reserve(13, 0, 0)
	defer taken.Release()
	for _, c := range []struct {
		admitted bool
		want     int
	}{{false, 1}, {true, 3}, {false, 1}} {
		if c.admitted {
			members[0].hintClaimOfAdmitted()
		}
		if _, many, _ := g.countFreeSlotsAndPrefetch(100); many != c.admitted {
			t.Errorf("admitted %v: a claim need not wait for more slots: %v", c.admitted, many)
		}
		pace := claimPace{limit: 100}
		if n, _, err := g.claimForMembers(members[0], &pace, 0); n != c.want || err != nil {
			t.Errorf("admitted %v: claimed for %d slots, %v, want %d", c.admitted, n, err, c.want)
		}
	}
}

// Members whose slots are all taken get no part of the limit, and what the small ones do not need is for the large ones.
func TestFullMembersTakeNothingOfTheLimit(t *testing.T) {
	t.Parallel()
	for turn := range 20 {
		s := new(claimRecorder)
		members := newGroup(t, s, append(slices.Repeat([]int{1}, 19), 1000)...)
		members[0].claimGroup.firstMemberIndex = turn
		for _, m := range members[:10] {
			taken := m.slots.Reserve(1, 0, 0)
			defer taken.Release()
		}
		pace := claimPace{limit: 256, isFull: true}
		if n, _, err := members[0].claimGroup.claimForMembers(members[0], &pace, 0); n != 256 || err != nil {
			t.Errorf("turn %d: claimed for %d slots, %v", turn, n, err)
		}
	}
}

// A quiet leader makes another member claim the runs whose time in line is over.
func TestAQuietLeaderLetsAnotherMemberEndExpiredRuns(t *testing.T) {
	t.Parallel()
	s := &claimRecorder{queues: []store.QueueRow{{Name: "q", Settings: store.QueueSettings{MaxExecuting: 1}}}}
	members := newGroup(t, s, 1, 1)
	members[0].slots.SetQuiet(true)
	for _, m := range members {
		m.queueAdmitter.SummaryOrRead(t.Context())
	}
	members[0].claimGroup.claimRunsExpiredInQueue(members[0])
	if len(s.got) != 1 || s.got[0].Worker != members[1].id || s.got[0].MaxSuspects != 0 {
		t.Errorf("the claims are %+v", s.got)
	}
}

// A member without others with free slots, and one of a group of one, claims alone.
func TestTheOnlyMemberWithAFreeSlotOwnsWhatIsClaimed(t *testing.T) {
	t.Parallel()
	s := new(claimRecorder)
	members := newGroup(t, s, 2, 2)
	members[0].slots.SetQuiet(true) // it leads all the same
	if n, err := claimOnce(t, members, 100); n != 2 || err != nil || s.got[0].Worker != members[1].id || s.got[0].Owners != nil {
		t.Errorf("%d slots, %v, and the claim is %+v", n, err, s.got)
	}
	members[1].slots.SetQuiet(true)
	if n, err := claimOnce(t, members, 100); n != 0 || err != nil || len(s.got) != 1 {
		t.Errorf("claimed for %d slots of quiet workers: %v", n, err)
	}
}

// A claim whose reply was lost may have taken runs for each member, so each searches for its own.
func TestEachMemberSearchesForTheRunsOfAFailedClaim(t *testing.T) {
	t.Parallel()
	s := &claimRecorder{err: errors.New("lost")}
	members := newGroup(t, s, 2, 2)
	if _, err := claimOnce(t, members, 100); err == nil {
		t.Fatal("the claim succeeded")
	}
	for _, m := range members {
		failed := m.failedClaims.all()
		if len(failed) != 1 || failed[0].Worker != m.id || failed[0].Owners != nil || failed[0].EpochNonce != s.got[0].EpochNonce || !failed[0].LeaseUntil.Equal(s.got[0].LeaseUntil) {
			t.Errorf("it searches for %+v", failed)
		}
	}
}

// While one member executes a suspect, the others take none in the same claim: they would die with it.
func TestTheMembersOfAClaimExecuteOneSuspect(t *testing.T) {
	t.Parallel()
	s := new(claimRecorder)
	members := newGroup(t, s, 2, 2)
	for _, want := range []int{1, 0} {
		if _, err := claimOnce(t, members, 100); err != nil || s.got[len(s.got)-1].MaxSuspects != want {
			t.Errorf("the claim takes %d suspects, want %d: %v", s.got[len(s.got)-1].MaxSuspects, want, err)
		}
		members[1].suspectRun.Store(new(run))
	}
	taken := members[1].slots.Reserve(2, 0, 0) // it has no share in the claim
	defer taken.Release()
	pace := claimPace{limit: 100, isFull: true}
	if _, _, err := members[0].claimGroup.claimForMembers(members[0], &pace, 0); err != nil || s.got[len(s.got)-1].MaxSuspects != 0 {
		t.Errorf("the claim takes %d suspects while a full member executes one: %v", s.got[len(s.got)-1].MaxSuspects, err)
	}
}

// A queue that bounds its runs for each worker may be full for one member and not for another.
func TestMembersClaimByThemselvesIfAQueueBoundsEachWorker(t *testing.T) {
	t.Parallel()
	s := &claimRecorder{queues: []store.QueueRow{{Name: "q", Settings: store.QueueSettings{MaxExecutingPerWorker: 1}}}}
	members := newGroup(t, s, 2, 2)
	if n, err := claimOnce(t, members, 100); n != 4 || err != nil || len(s.got) != 2 {
		t.Fatalf("%d slots, %d claims: %v", n, len(s.got), err)
	}
	var by []uuid.UUID
	for _, q := range s.got {
		if by = append(by, q.Worker); q.Owners != nil {
			t.Errorf("claimed together: %+v", q)
		}
	}
	for _, m := range members {
		if !slices.Contains(by, m.id) {
			t.Errorf("%s has not claimed", m.id)
		}
	}
	s.err = errors.New("away")
	if _, err := claimOnce(t, members, 100); err == nil || len(s.got) != 3 {
		t.Errorf("%d claims after one that failed: %v", len(s.got)-2, err)
	}
}

// The group claims at the turn of the first of its members.
func TestAGroupHasTheTurnOfItsFirstMember(t *testing.T) {
	t.Parallel()
	members := newGroup(t, new(claimRecorder), 1, 1)
	now := time.Unix(0, 0)
	for i, m := range members {
		m.otherWorkers.RecordPeers(&store.DeadWorkersResult{LiveCount: 9, LiveWithLowerIDCount: 7 - 4*i})
	}
	if got, want := members[0].claimGroup.claimDelayAfterNotification(now), members[1].otherWorkers.ClaimDelayAfterNotification(now); got != want || got <= 0 {
		t.Errorf("the group claims after %v, want %v", got, want)
	}
}

// A group that waits for its turn claims sooner if it has the turn of a later notification.
func TestALaterNotificationHasATurnOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newGroup(t, new(claimRecorder), 1)[0]
		<-w.claimGroup.hints      // that it has joined
		turn := func(place int) { // in a fleet of ten
			now := w.e.clock.Now().UnixNano() / int64(polling.FirstWorkerRotationInterval)
			w.otherWorkers.RecordPeers(&store.DeadWorkersResult{LiveCount: 9, LiveWithLowerIDCount: (place + 10 - int(now%10)) % 10})
		}
		began := time.Now()
		done := make(chan time.Duration, 1)
		turn(9)
		w.claimGroup.sharedHints.Notify()
		go func() {
			w.awaitWork(t.Context(), time.Hour, time.Time{})
			done <- time.Since(began)
		}()
		synctest.Wait()
		turn(1)
		w.claimGroup.sharedHints.Notify()
		if got := <-done; got != time.Millisecond {
			t.Errorf("it claims after %v", got)
		}
	})
}

// Workers share a group if each may execute what the others claim, and if they pace their claims alike.
func TestWhoClaimsTogether(t *testing.T) {
	t.Parallel()
	tel, err := telemetry.New(slog.New(slog.DiscardHandler), nil, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := new(claimRecorder)
	with := func(s store.Store, change func(*Config)) *workerClaimGroup {
		cfg := Config{Lease: time.Minute, Poll: time.Second, Concurrency: 1, Telemetry: tel, Definitions: []*WorkflowDefinition{{Name: "v"}, {Name: "w"}}}
		change(&cfg)
		return New(s, cfg).claimGroup
	}
	first := with(s, func(*Config) {})
	for what, same := range map[string]*workerClaimGroup{
		"the same":               with(s, func(*Config) {}),
		"another concurrency":    with(s, func(c *Config) { c.Concurrency = 7 }),
		"another order":          with(s, func(c *Config) { slices.Reverse(c.Definitions) }),
		"the default of a limit": with(s, func(c *Config) { c.ClaimLimit = defaultClaimLimit }),
	} {
		if same != first {
			t.Errorf("%s: its worker does not claim with the first", what)
		}
	}
	for what, other := range map[string]*workerClaimGroup{
		"another store":       with(new(claimRecorder), func(*Config) {}),
		"a wrapped store":     with(struct{ store.Store }{s}, func(*Config) {}),
		"another workflow":    with(s, func(c *Config) { c.Definitions = c.Definitions[1:] }),
		"a pinned workflow":   with(s, func(c *Config) { c.Definitions = []*WorkflowDefinition{{Name: "v", Pinned: true}, {Name: "w"}} }),
		"a queue":             with(s, func(c *Config) { c.Queues = []string{"q"} }),
		"another version":     with(s, func(c *Config) { c.Version = "2" }),
		"another lease":       with(s, func(c *Config) { c.Lease = time.Hour }),
		"another crash limit": with(s, func(c *Config) { c.MaxCrashes = 9 }),
		"another claim limit": with(s, func(c *Config) { c.ClaimLimit = 1 }),
		"a codec":             with(s, func(c *Config) { c.Codec = noCodec{} }),
	} {
		if other == first {
			t.Errorf("%s: its worker claims with the first", what)
		}
	}
}

// noCodec is a codec whose methods are not called.
type noCodec struct{ payload.Codec }
