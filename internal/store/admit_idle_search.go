package store

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// A queue may get a bound on runs in progress while it has runs that began before. Admissions find such runs by their wake times, and
// count them. Runs that wait or are paused without a wake time are found by a search: each admission reads a part of all idle runs of the
// database, until all are read. Until then, no root run of the queue begins, so that the bound is not exceeded.
//
// The search begins only when admissions have seen all runs of the queue that have a wake time, because an unseen run may become idle
// in a part that the search has already read. For the same reason the search ends only when there is no unseen run with a wake time:
// such a run may have been idle, and was woken before the search read it.
//
// A worker that has not read the queue's row yet may execute such a run between two admissions, until the run is idle again. A second
// search, which begins when all workers have read the row, finds these runs. Root runs of the queue begin during the second search.

// MaxIdleRunsReadPerAdmission is how many idle runs of the database one admission reads at most, to find those that its queue has not counted.
const MaxIdleRunsReadPerAdmission = 2000

// secondIdleSearchDelay is the time from the end of the first search until the second search. Workers read the rows of queues each second.
const secondIdleSearchDelay = 3 * time.Second

// searchPositionSeparator is between the applied settings and the position of the search. The JSON of settings does not contain it.
const searchPositionSeparator = "\n"

// IdleRunsCursor is the position of the search for idle runs. The search reads waiting runs first, then paused runs.
type IdleRunsCursor struct {
	Status Status    // of the runs to read next; zero: the search has not begun
	After  uuid.UUID // the run of this status that was read last
}

// IdleRunsChunk is what one read of the search has found.
type IdleRunsChunk struct {
	Uncounted []AdmissionRun // root runs of the queue that have begun and have AdmissionNotNeeded, with their rows locked
	ReadUntil uuid.UUID      // the last idle run that was read, of any queue
	HasMore   bool           // there are further runs of this status, or another transaction has locked the run after ReadUntil
}

// IdleRunsReader reads for the search, in the transaction of an admission that has locked the queue.
type IdleRunsReader interface {
	// ReadIdleRuns returns the idle runs after the cursor, at most MaxIdleRunsReadPerAdmission.
	ReadIdleRuns(c IdleRunsCursor) (IdleRunsChunk, error)

	// HasUnseenRuns reports whether the queue has a run with a wake time and with AdmissionNotNeeded. HasUnseenRuns reads the lanes of the
	// database, and does not rely on a cache.
	HasUnseenRuns() (bool, error)
}

// idleSearch is the state of the search after a pass.
type idleSearch struct {
	cursor   IdleRunsCursor
	secondAt time.Time // when the second search may begin; zero: this is the first search
	advanced bool      // by this pass
	ended    bool
}

// SearchIdleRuns continues the search for idle runs, if the queue needs one, and adds the runs that it finds to the QueueState. A store calls SearchIdleRuns
// after it has called AddRuns for the runs of all other kinds, and before KeysToRead.
func (s *QueueState) SearchIdleRuns(r IdleRunsReader) error {
	search := s.idleSearchPosition()
	s.idleSearch = search
	if search == nil || search.secondAt.After(s.idleSearchClock()) {
		return nil
	}
	begin := search.cursor
	c := begin
	if c.Status == 0 {
		if unseen, err := r.HasUnseenRuns(); err != nil || unseen {
			return err
		}
		c.Status = Waiting
	}
	for {
		chunk, err := r.ReadIdleRuns(c)
		if err != nil {
			return err
		}
		s.AddRuns(chunk.Uncounted)
		c.After = chunk.ReadUntil
		if chunk.HasMore || c.Status == Paused {
			search.ended = !chunk.HasMore
			break
		}
		c = IdleRunsCursor{Status: Paused}
	}
	search.cursor, search.advanced = c, c != begin
	if !search.ended {
		return nil
	}
	unseen, err := r.HasUnseenRuns()
	search.ended = !unseen
	if search.ended && search.secondAt.IsZero() {
		s.idleSearch = &idleSearch{secondAt: s.idleSearchClock().Add(secondIdleSearchDelay), advanced: true}
	}
	return err
}

// idleSearchClock returns the clock of this pass, even if advanceClock was not called yet.
func (s *QueueState) idleSearchClock() time.Time { return laterTime(s.Clock, s.Now) }

// idleSearchPosition returns where the search continues, or nil if the queue needs no search. The queue needs a search if its settings
// bound the runs in progress, and either the settings at the last admission did not, or the search has not ended.
func (s *QueueState) idleSearchPosition() *idleSearch {
	if s.Deleted || !s.Settings.boundsRunsInProgress() {
		return nil
	}
	settings, position := cutSearchPosition(s.AppliedSettings)
	if position != "" {
		var c IdleRunsCursor
		var id string
		var secondAt int64
		if _, err := fmt.Sscan(position, &c.Status, &id, &secondAt); err != nil {
			return &idleSearch{}
		}
		var err error
		if c.After, err = uuid.Parse(id); err != nil {
			return &idleSearch{}
		}
		search := &idleSearch{cursor: c}
		if secondAt != 0 {
			search.secondAt = time.UnixMicro(secondAt)
		}
		return search
	}
	if settings == s.RecordedSettings { // as in most admissions: no need to decode them
		return nil
	}
	if applied, err := DecodeQueueSettings(settings); err != nil || applied == nil || !applied.boundsRunsInProgress() {
		return &idleSearch{}
	}
	return nil
}

// cutSearchPosition splits the text of the applied settings, to which an admission adds the position of a search that has not ended.
func cutSearchPosition(applied string) (settings, position string) {
	settings, position, _ = strings.Cut(applied, searchPositionSeparator)
	return settings, position
}

// settingsChanged reports whether the settings have changed since the last admission.
func (s *QueueState) settingsChanged() bool {
	settings, _ := cutSearchPosition(s.AppliedSettings)
	return settings != s.RecordedSettings
}

// holdsRootsForIdleSearch reports whether the first search has not ended, so that no root run may begin.
func (s *QueueState) holdsRootsForIdleSearch() bool {
	return s.idleSearch != nil && s.idleSearch.secondAt.IsZero()
}

// isDue reports whether there is something to search at the time.
func (i *idleSearch) isDue(now time.Time) bool {
	return i != nil && !i.ended && !i.secondAt.After(now)
}

// applySettings records the settings as those of the last admission, with the position of a search that has not ended.
func (s *QueueState) applySettings() {
	s.AppliedSettings = s.RecordedSettings
	if i := s.idleSearch; i != nil && !i.ended {
		secondAt := int64(0)
		if !i.secondAt.IsZero() {
			secondAt = i.secondAt.UnixMicro()
		}
		s.AppliedSettings += fmt.Sprint(searchPositionSeparator, int(i.cursor.Status), " ", i.cursor.After, " ", secondAt)
	}
}

func (s QueueSettings) boundsRunsInProgress() bool {
	return s.MaxInProgress > 0 || s.MaxInProgressPerKey > 0
}
