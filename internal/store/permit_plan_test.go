package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/seed8ec063be/durable/internal/store"
)

// lineBed keeps one line as a store does, and what the steps of its runs do.
type lineBed struct {
	line    store.LimitKeyState
	rows    map[uuid.UUID]*store.PermitWithRun
	runs    map[uuid.UUID]*store.PermitWithRun // the states of the runs
	holds   map[uuid.UUID]*store.PermitRequest // what the processes hold that execute the runs, whatever the rows say
	ids     []uuid.UUID
	grants  []lineGrant
	attempt int32
}

type lineGrant struct {
	at    time.Time
	units int
}

// plan makes one plan, as a store does, and checks what it grants.
func (b *lineBed) plan(t *rapid.T, now time.Time, asks ...*store.PermitRequest) {
	if now.After(b.line.Now) { // the time of a line never goes back
		b.line.Now = now
	}
	b.line.Permits = nil
	for _, status := range []store.PermitStatus{store.PermitHeld, store.PermitOffered, store.PermitWaiting} {
		var part []store.PermitWithRun
		for _, p := range b.rows {
			if p.Status == status {
				seen := *p
				seen.RunState, seen.LeaseUntil = b.runs[p.Run].RunState, b.runs[p.Run].LeaseUntil
				part = append(part, seen)
			}
		}
		slices.SortFunc(part, func(x, y store.PermitWithRun) int { return store.ComparePermits(&x.PermitRow, &y.PermitRow) })
		b.line.Permits = append(b.line.Permits, part...)
	}
	asked := &store.PermitRequestingSteps{HeldPermits: map[*store.PermitRequest]store.PermitRow{}, Runs: map[uuid.UUID]store.PermitRequestingRun{}}
	for _, a := range asks {
		if p := b.rows[a.Run]; p != nil {
			asked.HeldPermits[a] = p.PermitRow
		}
		asked.Runs[a.Run] = store.PermitRequestingRun{RunState: b.runs[a.Run].RunState, LeaseUntil: b.runs[a.Run].LeaseUntil}
	}
	for id, a := range b.holds {
		if r := b.runs[id]; r.RunState.Status != store.Running || r.RunState.Epoch != a.Epoch || !r.LeaseUntil.After(now) {
			delete(b.holds, id)
		}
	}
	held := b.held()
	repeated := map[uuid.UUID]bool{}
	for _, a := range asks {
		p := b.rows[a.Run]
		repeated[a.Run] = p != nil && p.Status == store.PermitHeld && p.Epoch == a.Epoch && p.Attempt == a.Attempt
	}
	plan := b.line.Plan(&store.PermitBatch{Now: now, CloseDurationAfterRewind: time.Second, Requests: asks}, asked, "")
	b.line.RateUsedUntil, b.line.ClosedUntil = plan.RateUsedUntil, plan.ClosedUntil
	for _, p := range plan.ToDelete {
		delete(b.rows, p.Run)
	}
	for _, p := range append(plan.ToWrite, plan.ToOffer...) {
		b.rows[p.Run] = &store.PermitWithRun{PermitRow: p}
	}
	for _, a := range asks {
		delete(b.holds, a.Run)
		if a.Outcome == store.Written {
			b.holds[a.Run] = a
		}
		if a.Outcome == store.Written && !repeated[a.Run] {
			b.grants = append(b.grants, lineGrant{b.line.Now, b.fit(a.Units)})
		}
	}
	if n, most := b.held(), b.line.Settings.Concurrent; most > 0 && n > max(most, held) {
		t.Fatalf("%d units are held, want at most %d", n, most)
	}
	b.checkRate(t)
}

func (b *lineBed) giveBack(run uuid.UUID) {
	delete(b.rows, run)
	delete(b.holds, run)
}

func (b *lineBed) fit(units int) int {
	if s := b.line.Settings; s.Concurrent > 0 {
		units = min(units, s.Concurrent)
	}
	if s := b.line.Settings; s.Rate > 0 {
		units = min(units, s.Burst)
	}
	return units
}

// held returns how many units the processes hold.
func (b *lineBed) held() (n int) {
	for _, a := range b.holds {
		n += b.fit(a.Units)
	}
	return n
}

// checkRate checks each window that ends with the last grant.
func (b *lineBed) checkRate(t *rapid.T) {
	s := b.line.Settings
	if s.Rate == 0 || len(b.grants) == 0 {
		return
	}
	end, n := b.grants[len(b.grants)-1].at, 0
	for _, g := range slices.Backward(b.grants) {
		n += g.units
		if most := float64(s.Burst) + float64(s.Rate)*float64(end.Sub(g.at))/float64(s.Period); float64(n) > most+1e-6 {
			t.Fatalf("%d units were granted in %v, want at most %v (%+v)", n, end.Sub(g.at), most, s)
		}
	}
}

// Whatever steps ask, give back, end, and miss: no more units are held than Concurrent, no window has more
// grants than the rate and the burst, and everybody who keeps asking gets a permit.
func TestPlanKeepsTheBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := store.LimitSettings{Concurrent: rapid.IntRange(0, 4).Draw(t, "concurrent")}
		if rapid.Bool().Draw(t, "rated") {
			s.Rate, s.Burst = rapid.IntRange(1, 7).Draw(t, "rate"), rapid.IntRange(1, 4).Draw(t, "burst")
			s.Period = time.Duration(rapid.IntRange(1, 1000).Draw(t, "period")) * time.Millisecond
		}
		b := &lineBed{rows: map[uuid.UUID]*store.PermitWithRun{}, runs: map[uuid.UUID]*store.PermitWithRun{}, holds: map[uuid.UUID]*store.PermitRequest{}}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		b.line = store.LimitKeyState{LimitKey: store.LimitKey{Limit: "l"}, Settings: s, HasBounds: true, Now: now}
		for i := range 6 {
			id := uuid.UUID{0: 1, 15: byte(i)}
			b.ids = append(b.ids, id)
			b.runs[id] = &store.PermitWithRun{RunState: store.RunState{Found: true, Status: store.Running, Epoch: store.Epoch{Count: 1}}, LeaseUntil: now.Add(time.Second)}
		}
		units := rapid.SliceOfN(rapid.IntRange(1, 4), 6, 6).Draw(t, "units")
		priorities := rapid.SliceOfN(rapid.IntRange(-2, 2), 6, 6).Draw(t, "priorities")
		ask := func(i int) *store.PermitRequest {
			r := b.runs[b.ids[i]]
			return &store.PermitRequest{Limit: "l", Run: b.ids[i], Epoch: r.RunState.Epoch, Attempt: b.attempt + 1, Units: units[i], Priority: int16(priorities[i])}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "pass")) * time.Millisecond)
			i := rapid.IntRange(0, 5).Draw(t, "run")
			r := b.runs[b.ids[i]]
			switch rapid.IntRange(0, 8).Draw(t, "what") {
			case 8: // the clock is set back, and the leases are renewed
				was := now
				now = now.Add(-time.Duration(rapid.IntRange(0, 5000).Draw(t, "back")) * time.Millisecond)
				for _, r := range b.runs {
					if r.LeaseUntil.After(was) {
						r.LeaseUntil = now.Add(time.Second)
					}
				}
			case 0: // the permit or place is given back
				b.giveBack(b.ids[i])
				b.plan(t, now)
			case 1: // another execution takes over
				r.RunState.Status, r.RunState.Epoch.Count, r.LeaseUntil = store.Running, r.RunState.Epoch.Count+1, now.Add(time.Second)
			case 2:
				r.RunState.Status = store.Waiting
			case 3:
				r.RunState.Status = store.Completed
			case 4:
				r.RunState.Status = store.Paused
			case 5:
				b.attempt++
			case 6:
				var all []*store.PermitRequest
				for j := range b.ids {
					all = append(all, ask(j))
				}
				b.plan(t, now, all...)
			default:
				b.plan(t, now, ask(i))
			}
		}
		b.served(t, ask)
	})
}

// served checks that all who ask again and again, and give back what they get, get a permit, in the order
// of the line.
func (b *lineBed) served(t *rapid.T, ask func(int) *store.PermitRequest) {
	now := b.line.Now.Add(time.Minute) // offers end, leases too
	for _, id := range b.ids {
		b.runs[id].RunState.Status, b.runs[id].LeaseUntil = store.Running, now.Add(24*time.Hour)
		b.runs[id].RunState.Epoch.Count++
	}
	left := map[int]bool{0: true, 1: true, 2: true, 3: true, 4: true, 5: true}
	for range 200 {
		if len(left) == 0 {
			return
		}
		var asks []*store.PermitRequest
		for i := range b.ids {
			if left[i] {
				asks = append(asks, ask(i))
			}
		}
		b.plan(t, now, asks...)
		for i := range b.ids {
			if k := slices.IndexFunc(asks, func(a *store.PermitRequest) bool { return a.Run == b.ids[i] }); k >= 0 && asks[k].Outcome == store.Written {
				for j, a := range asks {
					if a.Outcome == store.Locked && a.Priority > asks[k].Priority {
						t.Fatalf("a step of priority %d passed one of priority %d (%d)", asks[k].Priority, a.Priority, j)
					}
				}
				delete(left, i)
				b.giveBack(b.ids[i])
			}
		}
		now = now.Add(2 * time.Second)
	}
	t.Fatal("never served: ", fmt.Sprint(left))
}

// A grant tells whether a rate applies now, whatever the code of the step declares: then it must be used soon.
func TestAGrantTellsWhetherItIsRated(t *testing.T) {
	now, run := time.Unix(1000, 0), uuid.UUID{1}
	for _, rated := range []bool{true, false} {
		l := store.LimitKeyState{LimitKey: store.LimitKey{Limit: "l"}, HasBounds: true, Now: now}
		a := &store.PermitRequest{Limit: "l", Run: run, Epoch: store.Epoch{Count: 1}, Units: 1}
		declared := store.LimitSettings{Rate: 1, Period: time.Second, Burst: 1}
		if rated {
			l.Settings = declared
		} else {
			a.Settings = declared
		}
		state := store.RunState{Found: true, Status: store.Running, Epoch: a.Epoch}
		l.Plan(&store.PermitBatch{Now: now, Requests: []*store.PermitRequest{a}}, &store.PermitRequestingSteps{Runs: map[uuid.UUID]store.PermitRequestingRun{run: {RunState: state, LeaseUntil: now.Add(time.Minute)}}}, "")
		if a.Outcome != store.Written || a.LimitHasRate != rated {
			t.Errorf("the grant is %v, rated %v, want %v", a.Outcome, a.LimitHasRate, rated)
		}
	}
}

// After a failover a limit and a queue are closed until the rate has paid back a whole burst, which may be longer than its period.
func TestAFailoverClosesForAWholeBurst(t *testing.T) {
	now, lease := time.Unix(1000, 0), time.Second
	for _, c := range []struct {
		burst int
		want  time.Duration
	}{{1, 3 * time.Second}, {12, 6 * time.Second}} {
		l := store.LimitKeyState{LimitKey: store.LimitKey{Limit: "l"}, HasBounds: true, Now: now, DatabaseTimeline: "1", Settings: store.LimitSettings{Rate: 6, Period: 3 * time.Second, Burst: c.burst}}
		plan := l.Plan(&store.PermitBatch{Now: now, CloseDurationAfterRewind: lease}, &store.PermitRequestingSteps{}, "2")
		if got := plan.ClosedUntil.Sub(now); got != c.want {
			t.Errorf("a limit with a burst of %d is closed for %v, want %v", c.burst, got, c.want)
		}
		rate := store.Rate{Count: 6, Period: 3 * time.Second, Burst: c.burst}
		for _, s := range []store.QueueSettings{{Rate: rate}, {RatePerKey: rate}} {
			q := store.QueueState{QueueRow: store.QueueRow{Name: "q", Settings: s}, Now: now, DatabaseTimeline: "1"}
			q.Plan("2", lease)
			if got := q.ClosedUntil.Sub(now); got != c.want {
				t.Errorf("a queue with %+v is closed for %v, want %v", s, got, c.want)
			}
		}
	}
}
