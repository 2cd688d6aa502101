package startkey

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// SingletonPolicy tells what a singleton does while a run with its key is live.
type SingletonPolicy string

// The values of SingletonPolicy.
const (
	Join    SingletonPolicy = "join"
	Refuse  SingletonPolicy = "refuse"
	Replace SingletonPolicy = "replace"
)

// Spec is the start key of a start, and what the key does.
type Spec struct {
	Kind            store.StartKeyKind
	Key             string
	SingletonPolicy SingletonPolicy // of a singleton
	QuietPeriod     time.Duration   // of a debounced start
	AtMost          time.Duration
	Count           int // of a throttle
	Period          time.Duration
}

// Start is one start with a start key.
type Start struct {
	Spec
	Run store.StartWrite // as it would be without a key
	// Call identifies the start within its step. Call is empty for a start outside of a step.
	Call string
	// StepBeganAt is when the step may have begun for the first time. StepBeganAt is zero if the step begins now.
	StepBeganAt time.Time
	Now         func() time.Time
	// RefusalError says why the queue takes no further run, and is nil if the queue takes one. A start that would create a run
	// returns RefusalError.
	RefusalError error

	// What Plan has decided:

	Result      uuid.UUID         // the run of the start
	Created     *store.StartWrite // the run that is created; nil: the start leads to another
	ExistingRun *store.Run        // a run with the name exists; the caller decides whether it is the same start
	Name        string            // of the run
	CheckAt     time.Time         // when a worker has something to do for the key; zero: not before the end of a run
	Err         error             // *LiveError, *SkippedError, or why the row cannot be read
	stamp       int64             // that an earlier try has written, perhaps; zero: there was none
	write       *store.StartKeyWrite
}

// ChangeRequest returns the change of the row.
func (p *Start) ChangeRequest() *store.StartKeyChangeRequest {
	return &store.StartKeyChangeRequest{Key: p.key(), Name: p.Run.Run.Name, RunsToRead: p.runs, Plan: p.Plan}
}

func (p *Start) key() store.StartKey {
	return store.StartKey{Workflow: p.Run.Run.Workflow, Key: p.Key, Kind: p.Kind}
}

// runs returns the runs that Plan needs to know.
func (p *Start) runs(row *store.StartKeyRow) []uuid.UUID {
	s, err := decode(row)
	if err != nil {
		return nil // Plan returns the error
	}
	list := s.runs()
	if run, found := s.findCallRun(p.Call); found {
		list = append(list, run)
	}
	slices.SortFunc(list, store.CompareUUIDsByShard)
	return slices.Compact(list)
}

// Plan decides about the start. It may be called several times.
func (p *Start) Plan(at store.StartKeySnapshot) *store.StartKeyWrite {
	p.Result, p.Created, p.ExistingRun, p.Name, p.CheckAt, p.Err, p.write = uuid.Nil, nil, nil, "", time.Time{}, nil, nil
	if at.RunWithName != nil {
		p.ExistingRun = at.RunWithName
		return nil
	}
	s, err := decode(at.Row)
	if err != nil {
		p.Err = err
		return nil
	}
	if run, found := s.findCallRun(p.Call); found {
		p.join(at, run)
		return nil
	}
	// An earlier try of this start may have been committed, and a newer start has come since; or so many
	// starts of steps have come since this step began that this one is perhaps no longer remembered.
	repeated := p.stamp != 0 && s.Stamp >= p.stamp || p.Call != "" && !p.StepBeganAt.IsZero() && s.Evicted >= micros(p.StepBeganAt)
	now := p.Now()
	s.Stamp = max(s.Stamp+1, micros(now))
	switch p.Kind {
	case store.StartKeySingleton:
		p.planSingleton(at, &s, now, repeated)
	case store.StartKeyDebounce:
		p.planDebounce(at, &s, now, repeated)
	case store.StartKeyThrottle:
		p.planThrottle(at, &s, now)
	}
	if p.Created != nil && p.RefusalError != nil {
		p.Result, p.Created, p.Name, p.CheckAt, p.Err, p.write = uuid.Nil, nil, "", time.Time{}, p.RefusalError, nil
		return nil
	}
	if p.write != nil {
		p.stamp = s.Stamp
	}
	return p.write
}

// join makes the start lead to a run that exists, or existed.
func (p *Start) join(at store.StartKeySnapshot, run uuid.UUID) {
	p.Result, p.Name = run, run.String()
	if r, found := at.Runs[run]; found {
		p.Name = r.Name
	}
}

// joinNewest makes a start that counts as older than others lead to the newest run, which stays as it is. If a step has made the start,
// the row remembers it: executed again, the step may be the only one that starts, and would count as the newest.
func (p *Start) joinNewest(at store.StartKeySnapshot, s *state) {
	run := s.newest()
	if p.join(at, run); p.Call != "" {
		s.remember(p.Call, run)
		p.setWrite(at, s, at.Row.CheckAt, nil)
	}
}

// create makes the start create its own run. Unless released is true, the run waits.
func (p *Start) create(released bool, s *state) *store.StartWrite {
	own := p.Run // a copy, because Plan may be called again
	own.Outcome, own.ExistingRun = 0, nil
	if !released {
		s.Due, s.Timeout = micros(own.Run.WakeAt), own.Timeout.Microseconds()
		if s.StartBy = 0; own.Place != nil && !own.Place.StartBy.IsZero() {
			place := *own.Place
			s.StartBy, place.StartBy = place.StartBy.Sub(own.Run.WakeAt).Microseconds(), time.Time{}
			own.Place = &place
		}
		own.Run.Unreleased, own.Run.WakeAt, own.Run.Deadline, own.Timeout = true, time.Time{}, time.Time{}, 0
	}
	p.Created, p.Result, p.Name = &own, own.Run.UUID, own.Run.Name
	return &own
}

// newest returns the run of the newest start.
func (s *state) newest() uuid.UUID {
	if s.Waiting != uuid.Nil {
		return s.Waiting
	}
	return s.Live
}

func (p *Start) planSingleton(at store.StartKeySnapshot, s *state, now time.Time, repeated bool) {
	live, waits := isLive(at, s.Live), isLiveAndUnstarted(at, s.Waiting)
	switch {
	case p.SingletonPolicy == Replace && repeated && s.newest() != uuid.Nil:
		p.joinNewest(at, s)
	case p.SingletonPolicy == Refuse && (live || waits):
		holder := s.Live
		if !live {
			holder = s.Waiting
		}
		p.Err = &LiveError{Workflow: p.Run.Run.Workflow, Key: p.Key, ID: at.Runs[holder].Name, RunID: holder.String()}
	case p.SingletonPolicy == Join && (live || waits):
		run := s.Live
		if waits {
			run = s.Waiting // the live run is being cancelled for it
		}
		p.join(at, run)
		if p.Call != "" {
			s.remember(p.Call, run)
			p.setWrite(at, s, p.nextCheckAt(at, now), nil)
		}
	default:
		if waits {
			s.Cancels = append(s.Cancels, s.Waiting)
		}
		own := p.create(!live, s)
		checkAt := now.Add(KeepRowFor)
		if s.Waiting = own.Run.UUID; !live {
			s.Live, s.Waiting = own.Run.UUID, uuid.Nil
		}
		if live || len(s.Cancels) > 0 {
			checkAt, p.CheckAt = now, now // there is a run to cancel
		}
		s.remember(p.Call, own.Run.UUID)
		p.setWrite(at, s, checkAt, own)
	}
}

// nextCheckAt returns when a worker checks the row if this start changes nothing about that.
func (p *Start) nextCheckAt(at store.StartKeySnapshot, now time.Time) time.Time {
	if at.Row == nil || at.Row.CheckAt.After(now) {
		return now.Add(KeepRowFor)
	}
	return at.Row.CheckAt // it is due
}

func (p *Start) planDebounce(at store.StartKeySnapshot, s *state, now time.Time, repeated bool) {
	if repeated && s.newest() != uuid.Nil {
		p.joinNewest(at, s)
		return
	}
	var own *store.StartWrite
	var input []byte
	if isLiveAndUnstarted(at, s.Waiting) {
		p.join(at, s.Waiting)
		input = p.Run.Run.Input
		s.Timeout = p.Run.Timeout.Microseconds()
	} else {
		own = p.create(false, s)
		s.Waiting, s.First = own.Run.UUID, micros(now)
	}
	due := time.UnixMicro(min(micros(now.Add(p.QuietPeriod)), s.First+p.AtMost.Microseconds()))
	s.Due, p.CheckAt = micros(due), due
	s.remember(p.Call, s.Waiting)
	p.setWrite(at, s, due, own)
	p.write.Row.WaitingInput = input
}

func (p *Start) planThrottle(at store.StartKeySnapshot, s *state, now time.Time) {
	t := micros(now)
	if n := len(s.Starts); n > 0 {
		t = max(t, s.Starts[n-1]) // a clock that was set back must not allow more
	}
	period := p.Period.Microseconds()
	s.Starts = slices.DeleteFunc(s.Starts, func(was int64) bool { return was <= t-max(period, s.Period) })
	in := s.Starts
	for len(in) > 0 && in[0] <= t-period {
		in = in[1:]
	}
	if len(in) >= p.Count {
		p.Err = &SkippedError{Workflow: p.Run.Run.Workflow, Key: p.Key, Until: time.UnixMicro(in[len(in)-p.Count] + period)}
		return
	}
	s.Period = period
	s.Starts = append(s.Starts, t)
	if over := len(s.Starts) - MaxThrottle; over > 0 {
		s.Starts = slices.Delete(s.Starts, 0, over)
	}
	own := p.create(true, s)
	s.Live = own.Run.UUID
	s.remember(p.Call, own.Run.UUID)
	p.setWrite(at, s, now.Add(max(KeepRowFor, p.Period)), own)
}

// setWrite sets what is written.
func (p *Start) setWrite(at store.StartKeySnapshot, s *state, checkAt time.Time, own *store.StartWrite) {
	var after uuid.UUID
	var input []byte
	if p.Kind == store.StartKeySingleton && s.Waiting != uuid.Nil {
		after = s.Live
	}
	if at.Row != nil && own == nil {
		input = at.Row.WaitingInput
	}
	p.write = &store.StartKeyWrite{Row: s.row(p.key(), checkAt, after, input), RunToCreate: own}
}
