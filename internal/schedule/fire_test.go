package schedule

import (
	"math"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// bench keeps the row and the fires of one schedule, as a store does.
type bench struct {
	t       *testing.T
	row     *store.Schedule
	fires   map[time.Time]store.FireOutcome
	started []time.Time // the times of the started runs, in order
	last    store.Status
}

func newBench(t *testing.T, s Settings, now time.Time) *bench {
	b := &bench{t: t, fires: make(map[time.Time]store.FireOutcome)}
	b.set(s, now)
	return b
}

func (b *bench) set(s Settings, now time.Time) {
	b.t.Helper()
	w, err := PlanSet("s", b.row, &s, now, "", "")
	b.write(w, err)
}

func (b *bench) write(w *store.ScheduleWrite, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	if w == nil {
		return
	}
	for i, f := range w.Fires {
		if b.fires[f.At] != store.FireStarted {
			b.fires[f.At] = f.Outcome
		}
		if f.RunToStart != nil {
			b.started = append(b.started, f.At)
			w.Fires[i].Run = uuid.NullUUID{UUID: uuid.New(), Valid: true}
		}
		if i == w.LastRunFireIndex {
			w.Row.LastRun, b.last = w.Fires[i].Run, store.Running
		}
	}
	b.row = &w.Row
}

// fire plans transactions until nothing is due, and returns how many it took.
func (b *bench) fire(now time.Time) (transactions int) {
	b.t.Helper()
	for {
		f := &Firing{Name: "s", Now: now, NewStart: func(string, *Settings, time.Time) *store.StartWrite { return new(store.StartWrite) }}
		state := store.ScheduleSnapshot{Row: b.row, LastStatus: b.last, FiredTimes: make(map[time.Time]bool)}
		for _, at := range f.TimesToDecide(b.row) {
			if o := b.fires[at]; o == store.FireStarted || o == store.FireWaiting {
				state.FiredTimes[at] = true
			}
		}
		w := f.Plan(state)
		if f.Err != nil {
			b.t.Fatal(f.Err)
		}
		if w == nil {
			return transactions
		}
		b.write(w, nil)
		transactions++
	}
}

func (b *bench) count() map[store.FireOutcome]int {
	n := make(map[store.FireOutcome]int)
	for _, o := range b.fires {
		n[o]++
	}
	return n
}

func secondly(overlap string, catchUp time.Duration) Settings {
	return Settings{Every: Duration(time.Second), Workflow: "w", Queue: "q", Overlap: overlap, CatchUp: Duration(catchUp)}
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// A schedule that fires each second was away for an hour. Of the runs that the next one would cancel at once, none is started.
func TestCatchingUpStartsNoRunThatIsCancelledAtOnce(t *testing.T) {
	for overlap, want := range map[string]map[store.FireOutcome]int{
		OverlapAllow:  {store.FireStarted: 3600},
		OverlapSkip:   {store.FireStarted: 1, store.FireSkipped: 3599},
		OverlapWait:   {store.FireStarted: 1, store.FireReplaced: 3598, store.FireWaiting: 1},
		OverlapCancel: {store.FireStarted: 1, store.FireReplaced: 3599},
	} {
		b := newBench(t, secondly(overlap, time.Hour), noon)
		n := b.fire(noon.Add(time.Hour))
		got := b.count()
		for outcome := range want {
			if got[outcome] != want[outcome] {
				t.Errorf("%s: %d times are %s, want %d", overlap, got[outcome], outcome, want[outcome])
			}
		}
		if len(b.fires) != 3600 || n != 36 {
			t.Errorf("%s: %d times in %d transactions, want 3600 in 36", overlap, len(b.fires), n)
		}
		if latest := b.started[len(b.started)-1]; overlap == OverlapCancel && !latest.Equal(noon.Add(time.Hour)) {
			t.Errorf("the run of %v was started, want the latest", latest)
		}
	}
}

// The longest CatchUp makes up for every time.
func TestTheLongestCatchUpMissesNothing(t *testing.T) {
	s := Settings{Cron: "@daily", Workflow: "w", Queue: "q", Overlap: OverlapAllow, CatchUp: math.MaxInt64, Jitter: Duration(time.Minute)}
	b := newBench(t, s, noon)
	b.fire(noon.Add(1000 * 24 * time.Hour))
	if got := b.count(); got[store.FireStarted] != 1000 || got[store.FireMissed] != 0 {
		t.Errorf("%v, want 1000 started", got)
	}
}

// A time that waits is started when Overlap becomes allow, although newer runs are always executing.
func TestATimeThatWaitsIsStartedWhenOverlapAllowsIt(t *testing.T) {
	b := newBench(t, secondly(OverlapWait, time.Hour), noon)
	b.fire(noon.Add(2 * time.Second))
	if got := b.count(); got[store.FireWaiting] != 1 {
		t.Fatalf("%v, want one that waits", got)
	}
	b.set(secondly(OverlapAllow, time.Hour), noon.Add(2*time.Second))
	b.fire(noon.Add(3 * time.Second))
	if got := b.count(); got[store.FireStarted] != 3 || !b.row.WaitingAt.IsZero() {
		t.Errorf("%v, want three started", got)
	}
}

// If the clock goes back, and the times are set anew, no time starts a second run.
func TestAClockThatGoesBackFiresNothingTwice(t *testing.T) {
	b := newBench(t, secondly(OverlapAllow, time.Hour), noon)
	b.fire(noon.Add(10 * time.Second))
	b.fire(noon.Add(5 * time.Second))
	other := secondly(OverlapAllow, time.Hour)
	other.Every = Duration(2 * time.Second)
	b.set(other, noon.Add(5*time.Second))
	b.fire(noon.Add(8 * time.Second))
	b.set(secondly(OverlapAllow, time.Hour), noon.Add(8*time.Second))
	b.fire(noon.Add(12 * time.Second))
	if len(b.started) != 12 {
		t.Errorf("%d runs were started of 12 times", len(b.started))
	}
}

// Two triggers at the same moment start two runs. A trigger that is tried again after its reply was lost starts
// none, also if others have triggered the schedule since.
func TestEachTriggerStartsOneRun(t *testing.T) {
	b := newBench(t, secondly(OverlapSkip, time.Hour), noon)
	ids := make(map[string]bool)
	for _, call := range []string{"a", "b", "b", "c", "a"} {
		f := &Firing{Name: "s", Now: noon, NewStart: func(string, *Settings, time.Time) *store.StartWrite { return new(store.StartWrite) }}
		w, id, err := PlanTrigger(f, store.ScheduleSnapshot{Row: b.row}, call)
		b.write(w, err)
		ids[id] = true
	}
	if len(b.started) != 3 || len(ids) != 3 || len(b.fires) != 3 {
		t.Errorf("%d runs, %d fires and the IDs %v of three calls, two of which were repeated", len(b.started), len(b.fires), ids)
	}
}
