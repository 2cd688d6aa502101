package model_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/seed8ec063be/durable/internal/store"
)

// limitCheck makes random calls that concern one limit, and checks what is granted.
type limitCheck struct {
	*check
	now   time.Time // of the clock of the database; it may go back
	codes []*limitCode
	code  *limitCode // of the worker that requests permits at present
	row   limitRow
	steps []*limitedStep
	lines map[string]*lineTrace // by key
	seen  *limitSight           // after the last call
}

// limitedStep is a step as the process knows it that executes its run. Its permits are those of the limit "l".
type limitedStep struct {
	run      uuid.UUID
	name     string
	key      string
	units    int
	priority int16
	attempt  int32
	epoch    store.Epoch // of the last ask
	waits    bool        // the last ask was put in line
	arrived  time.Time   // its place in the line
	done     bool
	left     bool // it has just left the line; only while all is drained
	held     *heldPermit
	retryAt  time.Time // when the step asks again by itself; zero: when its run is woken
}

// heldPermit is a permit of which a step was told.
type heldPermit struct {
	epoch     store.Epoch
	attempt   int32
	grantedAt time.Time
	recorded  bool // the limit had a Concurrent, so that the store counts the permit
}

// lineTrace is what has happened in one line.
type lineTrace struct {
	now    time.Time   // the latest time of a call; the line's clock never goes back
	grants []lineGrant // since the settings have changed
}

type lineGrant struct {
	at    time.Time
	units int
}

const limitName = "l"

// The steps of a limit, whatever is done to their runs and to the limit, through two handles: no more units are held and granted
// than its bounds allow, in the order of priority and arrival, a step that waits keeps its place, and in the end each step gets
// a permit.
func TestLimitsKeepTheirBounds(t *testing.T) {
	onBeds(t, fewChecks, func(t *rapid.T, b *bed) {
		l := &limitCheck{check: newCheck(t, b), now: base, lines: map[string]*lineTrace{"": {}, "a": {}}, row: limitRow{superseded: make(map[string]bool)}}
		l.codes = l.anyCode()
		l.code = l.codes[0]
		l.seen = l.read()
		t.Repeat(map[string]func(*rapid.T){
			"start":    l.action(l.start),
			"ask":      l.action(l.ask),
			"ask 2":    l.action(l.ask),
			"return":   l.action(l.giveBack),
			"look":     l.action(l.look),
			"change":   l.action(func() { l.single(l.change()) }),
			"run":      l.action(func() { l.single(l.changeRun()) }),
			"together": l.action(l.together),
			"sweep":    l.action(func() { l.single(l.sweep()) }),
		})
		l.drain()
	})
}

// anySettings returns bounds: of the units that are held, of the rate, or of both.
func (l *limitCheck) anySettings() (s store.LimitSettings) {
	which := l.dice("bounds", 3)
	if which != 1 {
		s.Concurrent = 1 + l.dice("concurrent", 4)
	}
	if which != 0 {
		s.Rate, s.Burst = 1+l.dice("rate", 3), 1+l.dice("burst", 3)
		s.Period = pick(l.check, "period", []time.Duration{time.Second, 700 * time.Millisecond, 2 * time.Second})
	}
	return s
}

// start starts a run with one or two steps.
func (l *limitCheck) start() {
	if len(l.seen.runs) == 5 {
		l.look()
		return
	}
	id := l.newID(int16(l.dice("shard", 2)))
	r := store.Run{
		UUID: id, Name: id.String(), Workflow: "f", Queue: "q", Priority: int16(max(0, l.dice("priority", 4)-2)), Status: store.Running,
		Epoch: store.Epoch{Count: 1, Nonce: l.nonce()}, Owner: uuid.NullUUID{UUID: workers[0], Valid: true}, CreatedAt: l.now, StartedAt: l.now, WakeAt: l.lease(),
	}
	for i := range 1 + l.dice("steps", 2) {
		l.steps = append(l.steps, &limitedStep{
			run: id, name: fmt.Sprint("s", i), key: pick(l.check, "key", []string{"", "", "a"}), units: 1 + l.dice("units", 3), priority: r.Priority, attempt: 1,
		})
	}
	l.single(fmt.Sprintf("start %s with priority %d", shorten(id), r.Priority), func(ctx context.Context, s store.Store) error {
		w := &store.StartWrite{Run: r}
		return commitNow(ctx, s, &store.Batch{Starts: []*store.StartWrite{w}}, func() store.WriteOutcome { return w.Outcome })
	})
}

// lease returns when a lease ends that begins now.
func (l *limitCheck) lease() time.Time {
	return l.now.Add(time.Duration(2+l.dice("lease", 6)) * time.Second)
}

// single makes one call that is not a call of Permits.
func (l *limitCheck) single(text string, do call) {
	l.must(text, do)
	l.seen = l.read()
	l.checkRow(text)
}

// request returns the ask of a step, as its process makes it.
func (l *limitCheck) request(s *limitedStep, epoch store.Epoch) *store.PermitRequest {
	return &store.PermitRequest{
		Limit: limitName, Key: s.key, Settings: l.code.settings, Run: s.run, Step: s.name, Epoch: epoch, Attempt: s.attempt, Units: s.units, Priority: s.priority,
	}
}

// requests returns the asks of up to n steps of running runs. Seldom a run has another owner by now.
func (l *limitCheck) requests(n int, free func(*limitedStep) bool) (asks []*store.PermitRequest) {
	var steps []*limitedStep
	for _, s := range l.steps {
		if r := l.seen.runs[s.run]; r != nil && !s.done && free(s) && r.Epoch.Count > 0 && (r.Status == store.Running || l.dice("former owner", 8) == 0) {
			steps = append(steps, s)
		}
	}
	for len(steps) > 0 && len(asks) < n {
		i := l.dice("step", len(steps))
		s := steps[i]
		steps = slices.Delete(steps, i, i+1)
		epoch := l.seen.runs[s.run].Epoch
		if l.dice("epoch", 20) == 0 {
			epoch.Nonce = l.nonce()
		}
		if s.held != nil && l.dice("next attempt", 3) == 0 {
			s.attempt++
		}
		asks = append(asks, l.request(s, epoch))
	}
	return asks
}

func (l *limitCheck) step(run uuid.UUID, name string) *limitedStep {
	for _, s := range l.steps {
		if s.run == run && s.name == name {
			return s
		}
	}
	return nil
}

// ask lets a few steps ask, and sometimes others give back in the same call.
func (l *limitCheck) ask() {
	l.code = pick(l.check, "code", l.codes)
	b := &store.PermitBatch{Requests: l.requests(1+l.dice("asks", 3), func(*limitedStep) bool { return true })}
	if l.dice("gives back", 4) == 0 {
		b.Returns = l.returns(1, b)
	}
	l.permits(b)
}

// returns gives back what up to n steps hold, or where they wait. A step that asks in the same call gives nothing back.
func (l *limitCheck) returns(n int, b *store.PermitBatch) (items []store.PermitReturn) {
	for _, s := range l.steps {
		asks := slices.ContainsFunc(b.Requests, func(a *store.PermitRequest) bool { return a.Run == s.run && a.Step == s.name })
		if len(items) == n || asks || s.held == nil && !s.waits || l.dice("gives", 2) == 0 {
			continue
		}
		if r := l.seen.runs[s.run]; s.waits && (r == nil || r.Status != store.Running || r.Epoch != s.epoch) {
			continue // only the process that executes the run takes the step out of the line
		}
		item := store.PermitReturn{Limit: limitName, Key: s.key, Run: s.run, Step: s.name, Epoch: s.epoch, Attempt: s.attempt}
		if s.held != nil {
			item.Epoch, item.Attempt = s.held.epoch, s.held.attempt
		}
		items = append(items, item)
	}
	return items
}

func (l *limitCheck) giveBack() {
	b := new(store.PermitBatch)
	if b.Returns = l.returns(2, b); len(b.Returns) == 0 {
		b.LimitKeys = []store.LimitKey{{Limit: limitName}}
	}
	l.permits(b)
}

// look looks at the lines, as each worker does every second.
func (l *limitCheck) look() {
	l.permits(&store.PermitBatch{LimitKeys: []store.LimitKey{{Limit: limitName}, {Limit: limitName, Key: "a"}}})
}

// showPermits returns a text with all that a call of Permits does.
func showPermits(b *store.PermitBatch) string {
	var words []string
	for _, r := range b.Returns {
		words = append(words, fmt.Sprintf("%s of %s gives back (%s, attempt %d)", r.Step, shorten(r.Run), r.Epoch, r.Attempt))
	}
	for _, a := range b.Requests {
		words = append(words, fmt.Sprintf("%s of %s asks for %d of %q (%s, attempt %d, priority %d)", a.Step, shorten(a.Run), a.Units, a.Key, a.Epoch, a.Attempt, a.Priority))
	}
	return fmt.Sprintf("at %s: %s; lines %v", offset(b.Now), strings.Join(words, ", "), b.LimitKeys)
}

// permitsCall returns the call. A try that fails leaves the batch as it was.
func permitsCall(b *store.PermitBatch) call {
	return func(ctx context.Context, s store.Store) error { return s.GrantAndReturnPermits(ctx, b) }
}

// setCaller sets the time, and the worker that makes the call.
func (l *limitCheck) setCaller(b *store.PermitBatch) {
	b.Now, b.CloseDurationAfterRewind, b.Version, b.WorkerStarted = l.now, time.Minute, l.code.version, l.code.started
}

// permits makes one call of Permits that nothing else meets, and checks all that it did.
func (l *limitCheck) permits(b *store.PermitBatch) {
	l.setCaller(b)
	text := showPermits(b)
	l.must(text, permitsCall(b))
	before := l.seen
	l.seen = l.read()
	l.checkGrants(text, before, b)
	l.checkPlaces(text, before, b)
	l.checkOrder(text, before, b)
}

// together makes two calls at the same time: two of Permits, or one and a change of a run.
func (l *limitCheck) together() {
	one := &store.PermitBatch{Requests: l.requests(2, func(s *limitedStep) bool { return number(s.run)%2 == 0 }), LimitKeys: []store.LimitKey{{Limit: limitName}}}
	other := &store.PermitBatch{Requests: l.requests(2, func(s *limitedStep) bool { return number(s.run)%2 == 1 }), LimitKeys: []store.LimitKey{{Limit: limitName, Key: "a"}}}
	l.setCaller(one)
	l.setCaller(other)
	text, do := showPermits(other), permitsCall(other)
	if l.dice("with", 2) == 0 {
		other = new(store.PermitBatch)
		text, do = l.changeRun()
	}
	text = showPermits(one) + "\n and " + text
	l.Logf("together: %s", text)
	var failed [2]error
	var both sync.WaitGroup
	both.Go(func() { failed[0] = l.repeated(permitsCall(one), 0) })
	both.Go(func() { failed[1] = l.repeated(do, 1) })
	both.Wait()
	if failed[0] != nil || failed[1] != nil {
		l.diverge("%s: %v", text, failed)
	}
	before := l.seen
	l.seen = l.read()
	l.checkGrants(text, before, one, other)
}

// change changes the bounds, or lets time pass.
func (l *limitCheck) change() (string, call) {
	switch l.dice("change", 7) {
	case 0, 1:
		return l.changeRow()
	case 2: // the clock of the database is set back, and the workers renew their leases
		var running []*store.Run
		for _, r := range l.seen.inOrder() {
			if r.Status == store.Running && r.WakeAt.After(l.now) {
				running = append(running, r)
			}
		}
		l.now = l.now.Add(-time.Duration(l.dice("back", 30000)) * time.Millisecond)
		text, do := l.renew(l.lease(), running...)
		return fmt.Sprintf("the clock is set back to %s: %s", offset(l.now), text), do
	default:
		l.now = l.now.Add(time.Duration(l.dice("pass", 3000)-500) * time.Millisecond)
		return fmt.Sprint("it is ", offset(l.now)), func(context.Context, store.Store) error { return nil }
	}
}

// changeRun ends a run, lets it wait, renews its lease, pauses, resumes, cancels or terminates it, or claims what is due.
func (l *limitCheck) changeRun() (string, call) {
	r := l.anyRun()
	what := l.dice("changes", 9)
	switch {
	case r == nil || what < 3:
		return l.claim(l.lease())
	case what < 6 && r.Status == store.Running:
		return l.leave(r)
	case what == 6 && r.Status == store.Running:
		return l.renew(l.lease(), r)
	}
	o := store.ControlRequest{
		Verb: pick(l.check, "verb", []store.ControlVerb{store.VerbPause, store.VerbPause, store.VerbResume, store.VerbResume, store.VerbCancel, store.VerbTerminate}),
		Runs: []uuid.UUID{r.UUID}, Now: l.now, Error: []byte("cancelled"),
	}
	return fmt.Sprintf("verb %d for %s", o.Verb, shorten(r.UUID)), func(ctx context.Context, s store.Store) error {
		mine := o
		return s.ControlRuns(ctx, &mine)
	}
}

// anyRun returns a run that has not ended, or nil.
func (l *limitCheck) anyRun() *store.Run {
	var runs []*store.Run
	for _, r := range l.seen.inOrder() {
		if !r.Status.IsTerminal() {
			runs = append(runs, r)
		}
	}
	if len(runs) == 0 {
		return nil
	}
	return pick(l.check, "run", runs)
}

// sweep deletes lines that nobody uses.
func (l *limitCheck) sweep() (string, call) {
	q := store.DeleteUnusedLimitKeysRequest{UsedBefore: l.now.Add(-4 * time.Second), Now: l.now, Limit: 10}
	return "sweep", func(ctx context.Context, s store.Store) error {
		_, err := s.DeleteUnusedLimitKeys(ctx, q)
		return err
	}
}

func (l *limitCheck) claim(until time.Time) (string, call) {
	c := store.ClaimQuery{Worker: workers[0], EpochNonce: l.nonce(), Filter: served[0], Limit: 5, MaxSuspects: 1, Now: l.now, LeaseUntil: until}
	return "claim", func(ctx context.Context, s store.Store) error {
		_, err := s.Claim(ctx, c)
		return err
	}
}

// leave ends a running run, or unloads it: while a step waits in line, until there is an offer, and else for a while.
func (l *limitCheck) leave(r *store.Run) (string, call) {
	w := store.OwnershipEnd{UUID: r.UUID, Now: l.now, Epoch: r.Epoch, Status: store.Waiting}
	inLine := slices.ContainsFunc(l.seen.permits, func(p store.QueuedPermit) bool {
		return p.Run == r.UUID && p.Status == store.PermitWaiting && p.Epoch == r.Epoch
	})
	switch n := l.dice("leaves", 6); {
	case n == 0 && r.Control&store.CancelRequested != 0:
		w.Status, w.EndedAt = store.Cancelled, l.now
	case n == 0:
		w.Status, w.EndedAt = store.Completed, l.now
	case n == 1:
		w.Status, w.WakeAt = store.Pending, l.now
	case n < 4 || !inLine:
		w.WakeAt = l.now.Add(time.Duration(1+l.dice("sleep", 3)) * time.Second)
	}
	return fmt.Sprintf("%s becomes %s", shorten(r.UUID), w.Status), func(ctx context.Context, s store.Store) error {
		mine := w
		return commitNow(ctx, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{&mine}}, func() store.WriteOutcome { return mine.Outcome })
	}
}

// renew renews the leases of runs.
func (l *limitCheck) renew(until time.Time, runs ...*store.Run) (string, call) {
	h := store.Heartbeat{Worker: store.Worker{ID: workers[0], Name: "w", StartedAt: base}, LeaseUntil: until}
	for _, r := range runs {
		h.Leases = append(h.Leases, store.Lease{Run: r.UUID, Epoch: r.Epoch})
	}
	return "renew " + showLeases(h.Leases), func(ctx context.Context, s store.Store) error {
		_, err := s.RenewLeases(ctx, h)
		return err
	}
}
