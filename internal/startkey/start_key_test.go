package startkey

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// table is a fold table with one row, and the runs of its starts.
type table struct {
	*testing.T
	now  time.Time
	row  *store.StartKeyRow
	runs map[uuid.UUID]store.StartKeyRun
}

func newTable(t *testing.T) *table {
	return &table{T: t, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), runs: make(map[uuid.UUID]store.StartKeyRun)}
}

func (f *table) apply(c *store.StartKeyChangeRequest) {
	f.Helper()
	w := c.Plan(store.StartKeySnapshot{Row: f.row, Runs: f.runs})
	if w == nil {
		return
	}
	if f.row = &w.Row; w.Delete {
		f.row = nil
	}
	if s := w.RunToCreate; s != nil {
		f.runs[s.Run.UUID] = store.StartKeyRun{Name: s.Run.Name, Status: store.Pending}
	}
}

func (f *table) newStart(spec Spec, call string) *Start {
	id, name := store.NewRootIdentity("")
	return &Start{
		Spec: spec, Call: call, Now: func() time.Time { return f.now },
		Run: store.StartWrite{Run: store.Run{UUID: id, Name: name, Workflow: "w", Status: store.Pending, Input: []byte(name), WakeAt: f.now}},
	}
}

func (f *table) start(spec Spec, call string) *Start {
	f.Helper()
	p := f.newStart(spec, call)
	f.apply(p.ChangeRequest())
	return p
}

func (f *table) look() *Check {
	f.Helper()
	l := &Check{Key: store.StartKey{Workflow: "w", Key: "k", Kind: f.row.Kind}, Now: f.now}
	f.apply(l.ChangeRequest(true))
	return l
}

func (f *table) set(run uuid.UUID, status store.Status) {
	r := f.runs[run]
	r.Status = status
	f.runs[run] = r
}

var (
	join     = Spec{Kind: store.StartKeySingleton, Key: "k", SingletonPolicy: Join}
	debounce = Spec{Kind: store.StartKeyDebounce, Key: "k", QuietPeriod: time.Minute, AtMost: time.Hour}
)

// A start of a step leads to the run of its first try as long as the row remembers it, and counts as older when the row may have
// forgotten it.
func TestAStartOfAStepIsRememberedOrCountsAsOlder(t *testing.T) {
	f := newTable(t)
	began := f.now
	first := f.start(debounce, "a step")
	for i := range maxCalls - 1 {
		f.now = f.now.Add(time.Second)
		f.start(debounce, fmt.Sprint(i))
	}
	again := f.newStart(debounce, "a step")
	again.StepBeganAt = began
	before := string(f.row.WaitingInput)
	f.apply(again.ChangeRequest())
	if again.Result != first.Result || string(f.row.WaitingInput) != before {
		t.Errorf("a remembered start leads to %v and the input %s, want %v and %s", again.Result, f.row.WaitingInput, first.Result, before)
	}
	f.start(debounce, "one too many")
	before = string(f.row.WaitingInput)
	f.apply(again.ChangeRequest())
	if again.Result != first.Result || string(f.row.WaitingInput) != before {
		t.Errorf("a start that is perhaps forgotten overwrites the input with %s", f.row.WaitingInput)
	}
	later := f.newStart(debounce, "a step that began later")
	later.StepBeganAt = f.now
	f.apply(later.ChangeRequest())
	if string(f.row.WaitingInput) != string(later.Run.Run.Input) {
		t.Error("a start of a step that began after what was forgotten counts as older")
	}
}

// A start of a step whose first try met another start counts as older, and leads to the run of the other. If the step is executed again
// later, it leads to that run again, and replaces no newer one.
func TestAStartOfAStepThatCountsAsOlderIsRemembered(t *testing.T) {
	replace := join
	replace.SingletonPolicy = Replace
	for _, spec := range []Spec{replace, debounce} {
		f := newTable(t)
		first := f.newStart(spec, "a step")
		first.ChangeRequest().Plan(store.StartKeySnapshot{}) // another transaction creates the row
		other := f.start(spec, "")
		due := f.row.CheckAt
		if f.apply(first.ChangeRequest()); first.Result != other.Result || first.Created != nil || !f.row.CheckAt.Equal(due) {
			t.Fatalf("%v: it leads to %v, created %v, the row %+v; want %v", spec.Kind, first.Result, first.Created, f.row, other.Result)
		}
		f.set(other.Result, store.Completed)
		newer := f.start(spec, "")
		row := *f.row
		again := f.newStart(spec, "a step")
		again.StepBeganAt = f.now
		if f.apply(again.ChangeRequest()); again.Result != other.Result || again.Created != nil || string(row.State) != string(f.row.State) || string(row.WaitingInput) != string(f.row.WaitingInput) {
			t.Errorf("%v: executed again it leads to %v, created %v; want %v, and %v to stay", spec.Kind, again.Result, again.Created, other.Result, newer.Result)
		}
	}
}

// A clock that is set back lets no further throttled start through, and loses no debounced start.
func TestAClockThatIsSetBack(t *testing.T) {
	f := newTable(t)
	throttle := Spec{Kind: store.StartKeyThrottle, Key: "k", Count: 2, Period: time.Minute}
	for _, want := range []bool{true, true, false} {
		p := f.start(throttle, "")
		if (p.Err == nil) != want || p.Err != nil && !errors.Is(p.Err, ErrSkipped) {
			t.Errorf("a throttled start: %v", p.Err)
		}
		f.now = f.now.Add(-time.Hour)
	}
	f.row, f.now = nil, f.now.Add(3*time.Hour)
	f.start(debounce, "")
	f.now = f.now.Add(-2 * time.Hour)
	newer := f.start(debounce, "")
	if string(f.row.WaitingInput) != string(newer.Run.Run.Input) || newer.CheckAt.After(f.now.Add(time.Minute)) {
		t.Errorf("the newer start after the clock was set back: input %s, due %v", f.row.WaitingInput, newer.CheckAt)
	}
}

// A row is deleted when its last start is long ago and its run has ended, and not before.
func TestARowIsDeletedWhenNothingNeedsIt(t *testing.T) {
	f := newTable(t)
	run := f.start(join, "").Result
	f.now = f.now.Add(KeepRowFor)
	if f.look(); f.row == nil || !f.row.CheckAt.Equal(f.now.Add(KeepRowFor)) {
		t.Fatalf("the row of a live run: %+v", f.row)
	}
	f.set(run, store.Completed)
	f.now = f.now.Add(KeepRowFor)
	if f.look(); f.row != nil {
		t.Errorf("the row of a run that ended: %+v", f.row)
	}

	f.row = nil
	f.start(Spec{Kind: store.StartKeyThrottle, Key: "k", Count: 1, Period: 3 * KeepRowFor}, "")
	clear(f.runs)
	f.now = f.now.Add(2 * KeepRowFor)
	if f.look(); f.row == nil {
		t.Error("a throttle is forgotten within its period")
	}
	f.now = f.now.Add(KeepRowFor)
	if f.look(); f.row != nil {
		t.Error("a throttle is kept after its period")
	}
}

// A row that does not decode refuses starts with the reason, and is not looked at all the time.
func TestARowThatDoesNotDecode(t *testing.T) {
	f := newTable(t)
	f.start(join, "")
	f.row.State, f.row.CheckAt = []byte("{"), f.now
	if p := f.start(join, ""); p.Err == nil || p.Created != nil {
		t.Errorf("a start: %v", p.Err)
	}
	if l := f.look(); l.Err == nil || !f.row.CheckAt.After(f.now) || string(f.row.State) != "{" {
		t.Errorf("a look: %v, %+v", l.Err, f.row)
	}
}

// The cancel of the live run comes before the release of what waits, and the row stays due until then.
func TestADueFoldKeyCancelsBeforeItReleases(t *testing.T) {
	f := newTable(t)
	replace := join
	replace.SingletonPolicy = Replace
	live := f.start(replace, "").Result
	old := f.start(replace, "").Result
	last := f.start(replace, "").Result
	if l := f.look(); len(l.Cancels) != 2 || l.Cancels[0] != old || l.Cancels[1] != live || f.row.CheckAt.After(f.now) {
		t.Fatalf("%+v, the row %+v", l, f.row)
	}
	f.set(old, store.Cancelled)
	f.runs[live] = store.StartKeyRun{Status: store.Running, Control: store.CancelRequested}
	if l := f.look(); len(l.Cancels) != 0 || l.Released != uuid.Nil || f.row.CheckAfterRun.UUID != live || !f.row.CheckAt.After(f.now) {
		t.Fatalf("%+v, the row %+v", l, f.row)
	}
	f.set(live, store.Cancelled)
	if l := f.look(); l.Released != last || f.row.CheckAfterRun.Valid {
		t.Fatalf("%+v, the row %+v", l, f.row)
	}
	if p := f.start(join, ""); p.Result != last {
		t.Errorf("a start joins %v, want %v", p.Result, last)
	}
}

// A run that was replaced while it waited is cancelled, also if the key has no live run when the next start comes before a worker has
// checked the key.
func TestAReplacedRunIsCancelledWhateverStartsNext(t *testing.T) {
	replace := join
	replace.SingletonPolicy = Replace
	f := newTable(t)
	first, replaced := f.start(replace, ""), f.start(replace, "")
	f.set(first.Result, store.Completed)
	next := f.start(replace, "") // it replaces the waiting run, and begins at once
	f.set(next.Result, store.Completed)
	for _, spec := range []Spec{replace, join} {
		last := f.start(spec, "a step")
		if f.row.CheckAt.After(f.now) {
			t.Errorf("%s: the key is checked at %v, although %s is to be cancelled now", spec.SingletonPolicy, f.row.CheckAt, replaced.Name)
		}
		if l := f.look(); len(l.Cancels) != 1 || l.Cancels[0] != replaced.Result {
			t.Errorf("%s: the check cancels %v, want %v", spec.SingletonPolicy, l.Cancels, replaced.Result)
		}
		f.set(last.Result, store.Completed)
	}
}

// The time by which a run must begin counts from its release, if the run is due then.
func TestTheTimeToBeginCountsFromTheRelease(t *testing.T) {
	replace := join
	replace.SingletonPolicy = Replace
	for _, spec := range []Spec{replace, debounce} {
		f := newTable(t)
		live := f.start(join, "").Result
		if spec.Kind == store.StartKeyDebounce {
			f.row = nil
		}
		p := f.newStart(spec, "")
		p.Run.Place = &store.QueuePlace{StartBy: f.now.Add(time.Second)}
		f.apply(p.ChangeRequest())
		if p.Created == nil || !p.Created.Place.StartBy.IsZero() || p.Run.Place.StartBy.IsZero() {
			t.Fatalf("%v: a run that waits for its key has the place %+v", spec.Kind, p.Created.Place)
		}
		f.set(live, store.Completed)
		f.now = f.now.Add(2 * time.Minute)
		var released *store.DelayedRunRelease
		l := &Check{Key: store.StartKey{Workflow: "w", Key: "k", Kind: spec.Kind}, Now: f.now}
		if w := l.Plan(store.StartKeySnapshot{Row: f.row, Runs: f.runs}); w != nil {
			released = w.Release
		}
		if released == nil || !released.WakeAt.Equal(f.now) || !released.StartBy.Equal(f.now.Add(time.Second)) {
			t.Errorf("%v: the release is %+v", spec.Kind, released)
		}
	}
}
