package engine

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/results"
	"github.com/seed8ec063be/durable/internal/store"
)

const (
	statusesPerRead            = 1000 // children whose statuses are read by one query
	maxResultRecorders         = 64   // goroutines that record the results of children; their writes share commits
	childrenPerRead            = 16   // children whose results are read by one query
	maxChildrenAwaitedTogether = 256  // open children that are all awaited at once
)

// A run that waits for many children must not be executed again at the end of each child. So the ends are counted in the database, and only
// the end that reaches the awaited count wakes the run; see store.SetAwaitedChildEndsRequest. The count only decides when the run reads the
// rows of its children; these rows say which children have ended. While the run is in memory, it waits for the end of one child, chosen at
// random, before it reads the rows again. So in whatever order the children end, it reads them about as often as the logarithm of their
// number.
//
// While a run starts the children, and between the two calls that set the awaited count, no end wakes the run. So the run must not park
// during this time. If it is suspended in another way, or its process dies, it is executed again anyway.

// HoldInMemory keeps the run in memory until the returned function is called. A caller calls HoldInMemory before it starts the
// children that AwaitChildren waits for.
func (s *Scope) HoldInMemory() (release func()) {
	s.r.idleTracker.beginBusy()
	return sync.OnceFunc(s.r.idleTracker.endBusy)
}

// AwaitChildren waits until all the given children have ended, and records their results. The children must have been started
// in the scope s, each for one item of an EachChild node. Child.Wait returns at once after AwaitChildren. If AwaitChildren
// cannot wait for all children, it returns earlier; Child.Wait then waits itself, or returns the cause. The caller must have
// called HoldInMemory. While AwaitChildren does nothing but wait, the run may leave memory nevertheless.
func (s *Scope) AwaitChildren(children []*Child) {
	r := s.r
	unrecorded := slices.DeleteFunc(slices.Clone(children), func(c *Child) bool { return c.startRow.Status.IsTerminal() })
	if len(unrecorded) == 0 || r.preflightFindings != nil || s.isInsideCall() || s.checkOpen() != nil {
		return
	}
	r.notePastReplay()
	s.awaitAndRecordChildEnds(unrecorded)
}

// awaitAndRecordChildEnds records the results of the children, until all have ended or the run cannot wait for them.
func (s *Scope) awaitAndRecordChildEnds(open []*Child) {
	r := s.r
	w := &store.SetAwaitedChildEndsRequest{Run: r.row.UUID, Epoch: r.row.Epoch, Name: strings.TrimSuffix(s.namePrefix, naming.Separator)}
	due := len(open) // when at most this many children are open, the awaited count is set again

	// If this execution has started all children, the count holds only their ends.
	if !slices.ContainsFunc(open, func(c *Child) bool { return !c.startedHere }) {
		due -= countChildEndsToAwait(len(open))
		if !s.setAwaitedChildEndCount(w, countChildEndsToAwait(len(open))) {
			return
		}
	}
	for {
		var ended []*Child
		var ok bool
		ended, open, ok = s.splitEndedAndOpenChildren(open)
		s.recordChildResults(ended)
		if !ok || len(open) == 0 {
			return
		}
		if len(open) <= due {
			if !s.setAwaitedChildEndCount(w, 0) {
				return
			}
			counted := w.CountedEnds // an end that is counted after this is awaited, unless the next line finds that the child has ended
			ended, open, ok = s.splitEndedAndOpenChildren(open)
			next := countChildEndsToAwait(len(open))
			due = len(open) - next
			if !ok || !s.setAwaitedChildEndCount(w, counted+next) {
				return
			}
			s.recordChildResults(ended)
			continue // some children may have ended before the awaited count was set
		}
		_, err := s.awaitRunEnd(open[rand.N(len(open))].id)
		if err != nil && !errors.Is(err, ErrNotFound) { // a child that was deleted has ended, and Child.Wait says so
			return
		}
	}
}

// awaitRunEnd waits until a run has ended, and returns the run. During the wait this run may leave memory. The calling call counts as
// busy before and after the wait.
func (s *Scope) awaitRunEnd(run uuid.UUID) (*store.Run, error) {
	idle := &s.r.idleTracker
	idle.endBusy()
	waiting := idle.beginWait(time.Time{})
	row, err := s.r.e.awaitRun(s.ctx, run, false, nil)
	if err != nil {
		s.noteGoroutineNotifiedIfSuspended()
	}
	idle.beginBusy() // before the wait ends, so that the run is not unloaded in between
	idle.endWait(waiting)
	return row, err
}

// countChildEndsToAwait returns how many of the open children must end before the run is woken: all of them, or half if there are more than
// maxChildrenAwaitedTogether. So only few results remain to be recorded after the last end.
func countChildEndsToAwait(open int) int {
	if open > maxChildrenAwaitedTogether {
		return open / 2
	}
	return open
}

// setAwaitedChildEndCount sets the count of ends that wakes the run. It reports false if the run cannot wait for a count.
func (s *Scope) setAwaitedChildEndCount(w *store.SetAwaitedChildEndsRequest, ends int) bool {
	w.EndsToAwait = ends
	err := s.r.e.retryUntilPatienceEnds(s.ctx, writeOptions{}, func() error { return s.r.e.store.SetAwaitedChildEnds(s.ctx, w) })
	return s.suspendOnChildReadError(err) && w.Outcome == store.Written
}

// splitEndedAndOpenChildren returns the children that have ended, and those that have not. It reports false if they cannot be read.
func (s *Scope) splitEndedAndOpenChildren(children []*Child) (ended, open []*Child, ok bool) {
	for some := range slices.Chunk(children, statusesPerRead) {
		var statuses []store.Status
		err := s.r.e.retryUntilPatienceEnds(s.ctx, writeOptions{}, func() (err error) {
			statuses, err = s.r.e.store.Statuses(s.ctx, childUUIDs(some))
			return err
		})
		if !s.suspendOnChildReadError(err) {
			return ended, nil, false
		}
		for i, status := range statuses {
			if status == 0 || status.IsTerminal() { // a child without a row will not end: Child.Wait returns the error
				ended = append(ended, some[i])
			} else {
				open = append(open, some[i])
			}
		}
	}
	return ended, open, true
}

// suspendOnChildReadError reports whether the error is nil. Otherwise the run is suspended, unless its calls are refused already.
func (s *Scope) suspendOnChildReadError(err error) bool {
	if err != nil && s.checkOpen() == nil {
		s.r.suspendAfterFailedWrite("look for children of", strings.TrimSuffix(s.namePrefix, naming.Separator), err)
	}
	return err == nil
}

func childUUIDs(children []*Child) []uuid.UUID {
	ids := make([]uuid.UUID, len(children))
	for i, c := range children {
		ids[i] = c.id
	}
	return ids
}

// recordChildResults reads and records the results of children that have ended.
func (s *Scope) recordChildResults(children []*Child) {
	chunks := slices.Collect(slices.Chunk(children, childrenPerRead))
	n := min(maxResultRecorders, len(chunks))
	var recording sync.WaitGroup
	for first := range n {
		recording.Go(func() {
			for i := first; i < len(chunks); i += n {
				s.recordChildResultsChunk(chunks[i])
			}
		})
	}
	recording.Wait()
}

// recordChildResultsChunk records the results of some children. It ignores errors, because Child.Wait reads the results that are not
// recorded, and returns its own errors.
func (s *Scope) recordChildResultsChunk(children []*Child) {
	ended, _ := results.ReadEnded(s.ctx, s.r.e.store, childUUIDs(children))
	byID := make(map[uuid.UUID]*store.Run, len(ended))
	for _, it := range ended {
		byID[it.ID] = it.Run
	}
	for _, c := range children {
		c.endedRun = byID[c.id]
		_, _ = c.Wait()
		c.endedRun = nil
	}
}
