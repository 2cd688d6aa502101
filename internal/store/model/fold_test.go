package model_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/seed8ec063be/durable/internal/startkey"
	"github.com/seed8ec063be/durable/internal/store"
)

// foldCheck makes random starts with one key, and random calls that concern their runs.
type foldCheck struct {
	*check
	now    time.Time
	latest time.Time // the latest time of a start that created a run
	kind   store.StartKeyKind
	spec   startkey.Spec // of all starts, but for SingletonPolicy
	starts []*foldStart
	runs   map[uuid.UUID]*foldedRun // every run that a committed start has created
	waits  map[uuid.UUID]bool       // those that are not released
	gone   map[uuid.UUID]bool       // those of them that a newer start has replaced
	seen   *foldSight
}

// foldStart is a start that was committed.
type foldStart struct {
	*startkey.Start
	number int
	run    uuid.UUID // what it led to; zero: it was refused or skipped
	wrote  bool      // it changed the row, or created a run
}

// foldedRun is what is known of a run.
type foldedRun struct {
	inputs   []string  // of debounced starts: the input of the last of them; more than one, if two came at the same time
	first    time.Time // of debounced starts: when the first came
	due      time.Time // and when the run is to begin
	at       time.Time // of a throttle: when the start was made
	replaced bool      // a newer start replaces it, or will
	ended    bool      // a user has cancelled or terminated it
}

var foldWorkflow = "f"

// The starts with one key, through two handles, at the same time, in transactions that are rolled back, and repeated: at most one run of a
// singleton is live and at most one waits, the last input of debounced starts counts, a throttle lets as many starts through as it says,
// and in the end no run waits.
func TestStartsFold(t *testing.T) {
	onBeds(t, fewChecks, func(t *rapid.T, b *bed) {
		f := &foldCheck{check: newCheck(t, b), now: base, runs: make(map[uuid.UUID]*foldedRun), waits: make(map[uuid.UUID]bool), gone: make(map[uuid.UUID]bool)}
		f.kind = store.StartKeyKind(1 + f.dice("kind", 3))
		f.spec = startkey.Spec{Kind: f.kind, Key: "k", QuietPeriod: 2 * time.Second, AtMost: 5 * time.Second, Count: 1 + f.dice("count", 3), Period: 3 * time.Second}
		f.seen = f.read()
		t.Repeat(map[string]func(*rapid.T){
			"start":       f.action(f.start),
			"start 2":     f.action(f.start),
			"repeat":      f.action(f.repeat),
			"transaction": f.action(f.inTransaction),
			"look":        f.action(f.look),
			"run":         f.action(func() { f.single(f.changeRun()) }),
			"claim":       f.action(f.claim),
			"pass":        f.action(f.pass),
			"together":    f.action(f.together),
		})
		f.drain()
	})
}

// pass lets time pass. Only the clock of a throttle may go back: nothing is due there.
func (f *foldCheck) pass() {
	d := time.Duration(f.dice("pass", 2500)) * time.Millisecond
	if f.kind == store.StartKeyThrottle && f.dice("back", 4) == 0 {
		d = -d
	}
	f.now = f.now.Add(d)
	f.Logf("it is %s", offset(f.now))
}

// newStart returns a start that was not made yet. Some are made by a step, which may be executed again.
func (f *foldCheck) newStart() *foldStart {
	f.ids++
	id := f.newID(int16(f.dice("shard", 2)))
	s := &foldStart{number: int(number(id)), Start: &startkey.Start{Spec: f.spec, Now: func() time.Time { return f.now }}}
	s.SingletonPolicy = pick(f.check, "while live", []startkey.SingletonPolicy{startkey.Join, startkey.Refuse, startkey.Replace, startkey.Replace})
	if f.dice("step", 3) == 0 {
		s.Call = fmt.Sprint("call ", s.number)
	}
	s.Run.Run = store.Run{
		UUID: id, Name: id.String(), Workflow: foldWorkflow, Queue: "q", Status: store.Pending, Input: fmt.Append(nil, s.number), CreatedAt: f.now, WakeAt: f.now,
	}
	return s
}

func (f *foldCheck) call(s *foldStart) call {
	return func(ctx context.Context, db store.Store) error { return db.UpdateStartKeyRow(ctx, s.ChangeRequest()) }
}

func (s *foldStart) String() string {
	return fmt.Sprintf("start %d (%s, call %q)", s.number, s.SingletonPolicy, s.Call)
}

func (f *foldCheck) start() {
	s := f.newStart()
	f.must(s.String(), f.call(s))
	f.committed(s)
}

// repeat makes the same start once more, because its reply was lost or its step is executed again.
func (f *foldCheck) repeat() {
	if len(f.starts) == 0 {
		f.start()
		return
	}
	was := pick(f.check, "repeat", f.starts)
	again := &foldStart{Start: was.Start, number: was.number}
	known := was.wrote
	if was.Call != "" && f.dice("another process", 2) == 0 {
		own := *was.Start
		own.Run.Run.UUID = f.newID(int16(f.dice("shard", 2)))
		own.Run.Run.Name = own.Run.Run.UUID.String()
		again.Start = &startkey.Start{Spec: own.Spec, Run: own.Run, Call: own.Call, StepBeganAt: base, Now: own.Now}
	} else if known {
		copied := *was.Start
		again.Start = &copied
	} else { // a copy would remember the stamp of a try that was undone, and count as older than what has come since
		again.Start = &startkey.Start{Spec: was.Spec, Run: was.Run, Call: was.Call, Now: was.Now}
	}
	f.must("again: "+again.String(), f.call(again))
	if !known { // nothing of it was recorded, so it is a new start
		f.starts = slices.DeleteFunc(f.starts, func(s *foldStart) bool { return s == was })
		f.committed(again)
		return
	}
	before := f.seen
	f.seen = f.read()
	result := again.Result
	if again.ExistingRun != nil {
		result = again.ExistingRun.UUID
	}
	if again.Err != nil || len(f.seen.runs) != len(before.runs) || f.seen.input != before.input || f.seen.waiting() != before.waiting() {
		f.diverge("again: %s changed something: %v; %s became %s", again, again.Err, before, f.seen)
	}
	if was.Call != "" && result != was.run || f.runs[result] == nil {
		f.diverge("again: %s led to %s, and now to %s", again, shorten(was.run), shorten(result))
	}
}

// inTransaction makes a start in a transaction of a user, which commits or is rolled back. Meanwhile another start with the key has to wait,
// on PostgreSQL with a bound. A database with one writer has no other start meanwhile.
func (f *foldCheck) inTransaction() {
	s, commit, beside := f.newStart(), f.dice("commits", 2) == 0, f.newStart()
	text := fmt.Sprintf("in a transaction that commits (%v): %s", commit, s)
	f.Log(text)
	err := f.bed.inTransaction(f.ctx, s.ChangeRequest(), func() bool {
		if f.bed.third != nil && s.Created != nil {
			if err := f.bed.handles[0].UpdateStartKeyRow(f.ctx, beside.ChangeRequest()); !again(err) {
				f.diverge("%s: another start: %v", text, err)
			}
		}
		return commit
	})
	if err != nil {
		f.diverge("%s: %v", text, err)
	}
	if commit {
		f.committed(s)
		return
	}
	before := f.seen
	if f.seen = f.read(); f.seen.String() != before.String() {
		f.diverge("%s: %s became %s", text, before, f.seen)
	}
}

// committed checks what a start did that nothing else met, and takes it over.
func (f *foldCheck) committed(s *foldStart) {
	before := f.seen
	f.note(s)
	f.seen = f.read()
	f.take(s, before)
	live, waits := before.live() != uuid.Nil, before.waiting() != uuid.Nil
	created := s.Created != nil
	if _, exists := f.seen.runs[s.Run.Run.UUID]; exists != created || len(f.seen.runs) != len(before.runs)+count01(created) {
		f.diverge("%s: created %v: %s became %s", s, created, before, f.seen)
	}
	switch {
	case f.kind == store.StartKeyThrottle:
		f.checkSample(s)
		return
	case f.kind == store.StartKeyDebounce:
		if created == waits || s.Err != nil || !created && s.Result != before.waiting() || f.seen.input != string(s.Run.Run.Input) {
			f.diverge("%s: created %v, error %v: %s became %s", s, created, s.Err, before, f.seen)
		}
		return
	}
	_, refused := errors.AsType[*startkey.LiveError](s.Err)
	switch joins := live || waits; s.SingletonPolicy {
	case startkey.Join:
		if created == joins || joins && s.Result != before.newest() {
			f.diverge("%s: created %v, and leads to %s: %s", s, created, shorten(s.Result), before)
		}
	case startkey.Refuse:
		if created == joins || refused != joins {
			f.diverge("%s: created %v, error %v: %s", s, created, s.Err, before)
		}
	default:
		if !created || s.Created.Run.Unreleased != live {
			f.diverge("%s: created %v (%+v): %s", s, created, s.Created, before)
		}
	}
}

func count01(b bool) int {
	if b {
		return 1
	}
	return 0
}

// note records whether the run of a committed start is to be released.
func (f *foldCheck) note(s *foldStart) {
	if s.Created != nil && s.Created.Run.Unreleased {
		f.waits[s.Result] = true
	}
}

// take takes a committed start over.
func (f *foldCheck) take(s *foldStart, before *foldSight) {
	s.run, s.wrote = s.Result, s.Created != nil || s.Err == nil && (s.Call != "" || f.kind != store.StartKeySingleton)
	f.starts = append(f.starts, s)
	if s.Err != nil {
		return
	}
	if s.Created != nil {
		if f.latest.Before(f.now) { // a clock that has gone back allows no more throttled starts
			f.latest = f.now
		}
		f.runs[s.Result] = &foldedRun{first: f.now, at: f.latest}
		if s.SingletonPolicy == startkey.Replace && f.kind == store.StartKeySingleton {
			for id := range before.runs {
				if r := f.runs[id]; r != nil && id != s.Result {
					r.replaced = true
					f.gone[id] = f.waits[id]
				}
			}
			f.seen.gone = maps.Clone(f.gone)
		}
	}
	if r := f.runs[s.Result]; f.kind == store.StartKeyDebounce && r != nil {
		r.inputs, r.due = []string{string(s.Run.Run.Input)}, f.now.Add(f.spec.QuietPeriod)
		if latest := r.first.Add(f.spec.AtMost); r.due.After(latest) {
			r.due = latest
		}
	}
}

// checkSample compares the starts that were let through with the number of the throttle.
func (f *foldCheck) checkSample(s *foldStart) {
	var times []time.Time // of the starts that were let through before
	latest := f.now
	for _, other := range f.starts[:len(f.starts)-1] {
		if other.Created != nil {
			at := f.runs[other.run].at
			times = append(times, at)
			latest = laterOf(latest, at)
		}
	}
	within := slices.DeleteFunc(slices.Clone(times), func(at time.Time) bool { return !at.After(latest.Add(-f.spec.Period)) })
	skipped, isSkipped := errors.AsType[*startkey.SkippedError](s.Err)
	if isSkipped != (len(within) >= f.spec.Count) || isSkipped == (s.Created != nil) {
		f.diverge("%s: created %v, error %v, although %d of %d were let through in the last %v", s, s.Created != nil, s.Err, len(within), f.spec.Count, f.spec.Period)
	}
	if isSkipped {
		slices.SortFunc(within, time.Time.Compare)
		if want := within[len(within)-f.spec.Count].Add(f.spec.Period); !skipped.Until.Equal(want) {
			f.diverge("%s: the next start is possible at %s, want %s", s, offset(skipped.Until), offset(want))
		}
	}
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// together makes a start and another call at the same time: a start, a look, or a change of a run.
func (f *foldCheck) together() {
	s, other := f.newStart(), f.newStart()
	text, do := other.String(), f.call(other)
	switch f.dice("with", 3) {
	case 0:
		other = nil
		text, do = f.changeRun()
	case 1:
		other = nil
		l := &startkey.Check{Key: f.key(), Now: f.now}
		text, do = "a look", f.lookCall(l)
	}
	text = fmt.Sprintf("%s\n and %s", s, text)
	f.Logf("together: %s", text)
	var failed [2]error
	var both sync.WaitGroup
	both.Go(func() { failed[0] = f.repeated(f.call(s), 0) })
	both.Go(func() { failed[1] = f.repeated(do, 1) })
	both.Wait()
	if failed[0] != nil || failed[1] != nil {
		f.diverge("%s: %v", text, failed)
	}
	before := f.seen
	if f.note(s); other != nil {
		f.note(other)
	}
	f.seen = f.read()
	if other == nil {
		f.take(s, before)
		return
	}
	if other.Result == s.Result && f.kind == store.StartKeySingleton && s.Created != nil && other.Created != nil {
		f.diverge("%s: both created a run", text)
	}
	if waits := strings.Contains(f.seen.row, fmt.Sprintf("%q:%q", "waiting", s.Result)); other.Created != nil && (s.Created == nil || f.kind == store.StartKeySingleton && waits) {
		s, other = other, s // the one that created the run came first, and of two the one whose run waits came last
	}
	f.take(s, before)
	f.take(other, f.seen)
	if r := f.runs[other.run]; f.kind == store.StartKeyDebounce && other.run == s.run {
		r.inputs = []string{string(s.Run.Run.Input), string(other.Run.Run.Input)}
	}
}
