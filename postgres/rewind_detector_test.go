package postgres

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// goneBack makes the store find its database at another position of its history.
func goneBack(t *testing.T, s *database, move func(logPosition) logPosition) error {
	t.Helper()
	was := s.rewindDetector.lastPosition()
	if was.timeline == 0 || was.position == 0 {
		t.Fatalf("the database is at %v", was.logPosition)
	}
	return s.checkForRewindOnPool(t.Context(), s.heartbeatPool, move(was.logPosition), was) // a pool without a connection
}

func earlier(p logPosition) logPosition { return logPosition{p.timeline, p.position - 1} }

func promoted(p logPosition) logPosition { return logPosition{p.timeline + 1, p.position + 1} }

// heartbeat returns the rewinds that the next heartbeat reports.
func heartbeat(t *testing.T, s *database) []store.DatabaseRewind {
	t.Helper()
	pulse, err := s.RenewLeases(t.Context(), store.Heartbeat{Worker: store.Worker{ID: uuid.New(), StartedAt: time.Now()}, LeaseUntil: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return pulse.DatabaseRewinds
}

// If the database has gone back, the store searches it for the acknowledged checkpoints. A run that lacks
// a checkpoint is released, so that it is replayed, and its old execution is fenced. All other runs
// continue.
func TestWhatLacksACheckpointIsReleased(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	whole, lacking, ended := running(uuid.New(), at), running(uuid.New(), at), running(uuid.New(), at)
	lacking.Name = "lacking"
	begin(t, s, &store.StartWrite{Run: whole}, &store.StartWrite{Run: lacking}, &store.StartWrite{Run: ended})
	for _, name := range []string{"a", "b", "c"} {
		commit(t, s, &store.Batch{Steps: []*store.StepWrite{done(whole.UUID, name, at), done(lacking.UUID, name, at), done(ended.UUID, name, at)}})
	}
	commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{finish(ended.UUID, at)}})
	if _, err := s.userPool.Exec(t.Context(), "DELETE FROM durable.step WHERE name >= 'b' AND run_id = ANY($1)", []uuid.UUID{lacking.UUID, ended.UUID}); err != nil {
		t.Fatal(err)
	}
	era := s.rewindDetector.rewindCount.Load()
	if err := goneBack(t, s, earlier); err != nil {
		t.Fatal(err)
	}
	told := heartbeat(t, s)
	if len(told) != 1 || told[0].OwnedRunCount != 2 || len(told[0].LostRuns) != 1 {
		t.Fatalf("told: %+v", told)
	}
	lost := told[0].LostRuns[0]
	slices.Sort(lost.MissingSteps)
	if lost.UUID != lacking.UUID || lost.Name != "lacking" || !slices.Equal(lost.MissingSteps, []string{"b", "c"}) {
		t.Errorf("lost: %+v", lost)
	}
	if again := heartbeat(t, s); len(again) != 0 {
		t.Errorf("it was told again: %+v", again)
	}
	if got := row(t, s, lacking.UUID); got.Status != store.Pending || got.WakeAt.IsZero() {
		t.Errorf("the run that lacks checkpoints: %+v", got)
	}
	if got := row(t, s, whole.UUID); got.Status != store.Running {
		t.Errorf("the run that lacks nothing: %+v", got)
	}
	old, fine := done(lacking.UUID, "d", at), done(whole.UUID, "d", at)
	commit(t, s, &store.Batch{Steps: []*store.StepWrite{old, fine}})
	if old.Outcome != store.Fenced || fine.Outcome != store.Written {
		t.Errorf("outcomes %d and %d", old.Outcome, fine.Outcome)
	}
	late := &store.Batch{Steps: []*store.StepWrite{fine}} // its result is from before the rewind
	if err := s.rewindDetector.recordAcknowledgedBatch(era, late); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, errRewound) {
		t.Errorf("a reply from before was used: %v", err)
	}
}

// A claimed history counts as acknowledged, and a run that no longer exists is reported.
func TestTheCheckpointsOfAClaimedHistoryAreSearchedAfterARewind(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	r := running(uuid.New(), at)
	r.WakeAt = at
	begin(t, s, &store.StartWrite{Run: r})
	commit(t, s, &store.Batch{Steps: []*store.StepWrite{done(r.UUID, "a", at)}})
	claims, err := s.Claim(t.Context(), store.ClaimQuery{Worker: uuid.New(), Filter: flow, Limit: 1, Now: at, LeaseUntil: at.Add(time.Minute)})
	if err != nil || len(claims.Runs) != 1 {
		t.Fatal(claims, err)
	}
	if _, err := s.userPool.Exec(t.Context(), "DELETE FROM durable.run"); err != nil {
		t.Fatal(err)
	}
	if err := goneBack(t, s, earlier); err != nil {
		t.Fatal(err)
	}
	told := heartbeat(t, s)
	if len(told) != 1 || len(told[0].LostRuns) != 1 || !told[0].LostRuns[0].RunMissing || told[0].LostRuns[0].UUID != r.UUID {
		t.Errorf("told: %+v", told)
	}
}

// The store refuses a primary that was superseded by a promotion, as long as the new one replies.
func TestAnOldPrimaryIsRefused(t *testing.T) {
	s := open(t, "cache_statement")
	if err := goneBack(t, s, promoted); err != nil {
		t.Fatal(err)
	}
	old := func(p logPosition) logPosition { return logPosition{p.timeline - 1, p.position + 1000} }
	if err := goneBack(t, s, old); !errors.Is(err, errOldPrimary) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, errOldPrimary)
	}
	s.rewindDetector.lastReplyAt.Store(time.Now().Add(-2 * refuseOldPrimaryFor).UnixNano())
	before := s.rewindDetector.lastPosition()
	now(t, s) // on a new connection to the server, which is still on the old timeline: it is the only one left
	if at := s.rewindDetector.lastPosition(); at.timeline != before.timeline-1 || at.era != before.era+1 {
		t.Errorf("the database is at %v, in era %d, after %v in era %d", at.logPosition, at.era, before.logPosition, before.era)
	}
}

// A rewind counts once, although several connections read their positions while the first of them finds it, and a heartbeat read its
// own before.
func TestARewindIsToldOnce(t *testing.T) {
	s := open(t, "cache_statement")
	floor := s.rewindDetector.lastPosition()
	back := logPosition{floor.timeline, floor.position / 2} // before all that the test itself writes
	if err := s.checkForRewindOnPool(t.Context(), s.heartbeatPool, back, floor); err != nil {
		t.Fatal(err)
	}
	if err := s.checkForRewindOnPool(t.Context(), s.heartbeatPool, back, floor); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, errRewound) {
		t.Errorf("a position that was compared with one of a former era: %v", err)
	}
	ahead := logPosition{floor.timeline, 2 * floor.position}
	s.rewindDetector.advancePosition(ahead, floor)
	if now := s.rewindDetector.lastPosition(); now.position >= ahead.position || now.era != floor.era+1 {
		t.Errorf("the last position is %v of era %d", now.logPosition, now.era)
	}
	if told := heartbeat(t, s); len(told) != 1 {
		t.Errorf("told: %+v", told)
	}
}

// A heartbeat that fails after it has extended the leases reports no rewind, so the next one does.
func TestARewindIsToldAfterAHeartbeatThatFails(t *testing.T) {
	s := open(t, "cache_statement")
	if err := goneBack(t, s, earlier); err != nil {
		t.Fatal(err)
	}
	readLost := s.statements.leasesLost
	s.statements.leasesLost = "SELECT 1/0"
	h := store.Heartbeat{
		Worker: store.Worker{ID: uuid.New(), StartedAt: time.Now()}, LeaseUntil: time.Now(),
		Leases: []store.Lease{{Run: uuid.New(), Epoch: epochAt(1)}}, // no such run
	}
	if _, err := s.RenewLeases(t.Context(), h); err == nil {
		t.Fatal("a heartbeat that cannot read its lost leases succeeds")
	}
	s.statements.leasesLost = readLost
	if told := heartbeat(t, s); len(told) != 1 {
		t.Errorf("told: %+v", told)
	}
}
