package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// Row 14: the network between two workers and PostgreSQL is slow, sends every byte in a
// segment of its own, or resets connections in the middle of what they carry. Everything
// finishes, and no step runs again that was acknowledged.
func TestRow14_BadNetwork(t *testing.T) {
	t.Parallel()
	const delay = 12 * time.Millisecond
	for name, w := range map[string]weather{"latency": {Delay: delay}, "slices": {Slice: 1}, "resets": {Reset: 30}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const runs, steps = 24, 10
			db := fresh(t, "postgres")
			p := newProxy(t, db.Where)
			direct := db
			db.Where = p.url(t, db.Where)
			l := newLedger(t)
			client := engineOn(t, direct.openIn(t), durable.Config{})
			var workers []*process
			for range 2 {
				workers = append(workers, spawn(t, job{Scenario: "steady", DB: db, Ledger: l, Lease: 10 * time.Second})) // longer than a loaded machine stands still
			}
			for _, worker := range workers {
				worker.expect("working") // from here on, what breaks off is tried again
			}
			calm := p.brew(w)
			began := time.Now()
			var items []durable.StartItem[int]
			for i := range runs {
				items = append(items, durable.StartItem[int]{ID: fmt.Sprint("r", i), Input: i})
			}
			handles, err := steady(l, steps, 0).StartMany(bounded(t), client, items)
			if err != nil {
				t.Fatal(err)
			}
			trip := time.Duration(0)
			if w.Delay > 0 {
				conn := session(t, db.Where)
				asked := time.Now()
				sql(t, conn, "SELECT 1")
				trip = time.Since(asked)
			}
			for i, run := range handles {
				want := steps*i + steps*(steps-1)/2
				if v, err := run.Result(bounded(t)); err != nil || v != want {
					t.Errorf("run %d: %d, %v; want %d", i, v, err, want)
				}
			}
			took := time.Since(began)
			did := p.brew(weather{})
			chunks, segments, resets := did.Chunks-calm.Chunks, did.Segments-calm.Segments, did.Resets-calm.Resets
			if chunks < runs*steps/8 {
				t.Errorf("the workers sent and got %d chunks only", chunks)
			}
			if trip < 2*w.Delay || w.Slice > 0 && segments < 20*chunks || w.Reset > 0 && resets < 5 {
				t.Errorf("the fault did not occur: a round trip of %v, %d segments of %d chunks, %d resets", trip, segments, chunks, resets)
			}
			executed, repeated := judgeSteady(t, l)
			if executed < runs*steps || resets == 0 && repeated > 0 {
				t.Errorf("%d executions of %d steps, %d of them repeated", executed, runs*steps, repeated)
			}
			onePerStep(t, direct, runs*steps)
			for _, worker := range workers {
				worker.signal(syscall.SIGTERM)
				worker.mustEndWell()
			}
			t.Logf("runs=%d steps=%d round_trip=%v chunks=%d segments=%d resets=%d executions=%d repeated_before_checkpoint=%d lost=0 took=%v",
				runs, runs*steps, trip.Round(time.Millisecond), chunks, segments, resets, executed, repeated, took.Round(10*time.Millisecond))
		})
	}
}

// onePerStep asserts that so many steps have one outcome each.
func onePerStep(t *testing.T, db database, steps int) {
	t.Helper()
	rows := sql(t, session(t, db.Where), "SELECT count(*), count(*) FILTER (WHERE status = 3) FROM "+pgx.Identifier{db.Schema, "step"}.Sanitize())[0]
	if rows[0] != int64(steps) || rows[1] != int64(steps) {
		t.Errorf("%v steps are recorded, %v of them completed, want %d", rows[0], rows[1], steps)
	}
}

const longSteps = 40

// long is steady work that outlasts a lease, and says why it leaves a process.
func long(l ledger, pace time.Duration) *durable.Workflow[int, int] {
	return durable.Define("long", func(c *durable.Ctx, in int) (int, error) {
		sum, err := steadily(c, l, in, longSteps, pace)
		if errors.Is(err, durable.ErrSuspended) {
			say("left", c.ID(), context.Cause(c))
		}
		return sum, err
	})
}

func init() {
	// long executes so many long runs at once, of steps of so many milliseconds, one held one,
	// and says what is refused.
	scenarios["long"] = func(ctx context.Context, j *job, s durable.Store) error {
		f := &faulty{Store: s, afterCommit: func(_ int64, b *store.Batch) error {
			if n := fenced(b); n > 0 {
				say("fenced", n)
			}
			return nil
		}}
		e, err := durable.New(f, durable.Config{Workflows: []durable.Definition{long(j.Ledger, time.Duration(j.N)*time.Millisecond), hold(j.Ledger, j.File)}, Concurrency: j.Runs + 1, Lease: j.Lease})
		if err != nil {
			return err
		}
		say("working")
		return e.Run(ctx)
	}
}

// holed is long runs in the process of a worker whose renewals can be made to disappear,
// and another worker that comes later and finds nothing to do.
type holed struct {
	db            database
	l             ledger
	p             *proxy
	file          string // for which the held run waits
	lease, pace   time.Duration
	client        *durable.Engine
	first, second *process
	runs          []*durable.Run[int]
}

func newHoled(t *testing.T, runs int, lease, pace time.Duration) *holed {
	t.Helper()
	h := &holed{db: fresh(t, "postgres"), l: newLedger(t), file: filepath.Join(t.TempDir(), "go"), lease: lease, pace: pace}
	h.p = newProxy(t, h.db.Where)
	h.p.watch(`SET wake_at = $5::timestamptz`) // in lease_extend.sql; only the connection for renewals sends it, while a heartbeat without leases may go on any
	h.client = engineOn(t, h.db.openIn(t), durable.Config{})
	cut := h.db
	cut.Where = h.p.url(t, cut.Where)
	h.first = h.worker(t, cut, runs, 1)
	var items []durable.StartItem[int]
	for i := range runs {
		items = append(items, durable.StartItem[int]{ID: fmt.Sprint("r", i), Input: i})
	}
	var err error
	if h.runs, err = long(h.l, pace).StartMany(bounded(t), h.client, items); err != nil {
		t.Fatal(err)
	}
	await(t, "all runs to be under way", func() bool { return len(h.l.counts(t)) >= 2*runs })
	return h
}

// worker is the nth process.
func (h *holed) worker(t *testing.T, db database, runs, nth int) *process {
	t.Helper()
	p := spawn(t, job{Scenario: "long", DB: db, Ledger: h.l, File: h.file, Lease: h.lease, Runs: runs, N: h.pace.Milliseconds()})
	p.expect("working")
	await(t, "the worker", func() bool { ws, err := h.client.Workers(bounded(t)); return err == nil && len(ws) == nth })
	return p
}

// finish waits for the runs, then for the processes.
func (h *holed) finish(t *testing.T) {
	t.Helper()
	for i, run := range h.runs {
		want := longSteps*i + longSteps*(longSteps-1)/2
		if v, err := run.Result(bounded(t)); err != nil || v != want {
			t.Errorf("run %d: %d, %v; want %d", i, v, err, want)
		}
	}
	h.p.heal() // pgx gives a connection that does not reply fifteen seconds to close
	for _, worker := range []*process{h.first, h.second} {
		worker.signal(syscall.SIGTERM)
		worker.mustEndWell()
	}
}

// Row 14: the renewals of one worker, and they alone, go into a black hole: its connections
// stay open, its checkpoints are committed as ever, and nothing tells it. When its lease is
// over another worker goes on with its runs, its writes are refused, and it suspends them.
func TestRow14_BlackHoleOnRenewals(t *testing.T) {
	t.Parallel()
	const runs, lease = 6, 2 * time.Second
	h := newHoled(t, runs, lease, 150*time.Millisecond)
	held := hold(h.l, h.file)
	start(t, h.client, held, 1, durable.ID("held"))
	h.first.expect("holding")
	h.second = h.worker(t, h.db, runs, 2)
	h.p.swallow(true)
	cutAt := time.Now()
	// A step that does not end before the takeover: its result comes too late for sure.
	if out, err := result(t, h.client, held, "held"); err != nil || out != "attempt 2" {
		t.Errorf("%q, %v", out, err)
	}
	if err := os.WriteFile(h.file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	lost := make(map[string]bool)
	for len(lost) < runs {
		id, cause, _ := strings.Cut(h.first.expect("left"), " ")
		lost[id] = true
		if cause != durable.ErrLeaseLost.Error() {
			t.Errorf("%s left because of %q", id, cause)
		}
	}
	h.finish(t)
	refused := 0
	for _, line := range h.first.seen {
		var n int
		if _, err := fmt.Sscanf(line, "fenced %d", &n); err == nil {
			refused += n
		}
	}
	did := h.p.brew(weather{})
	acked, took := takeover(t, h.l, h.first.cmd.Process.Pid, cutAt)
	crossed := oneOwnerAtATime(t, h.db, h.l)
	onePerStep(t, h.db, runs*longSteps+3)
	switch {
	case did.Lost == 0 || did.Swallowed == 0:
		t.Error("nothing fell into the hole")
	case acked == 0:
		t.Error("no checkpoint of the first worker was committed while its renewals were lost")
	case refused == 0:
		t.Error("no write of the first worker was refused")
	case took == 0:
		t.Error("the other worker did not take over")
	}
	t.Logf("runs=%d connections_lost=%d bytes_lost=%d checkpoints_meanwhile=%d takeover=%v lease=%v suspended=%d writes_refused=%d in_flight_at_the_takeover=%d",
		runs, did.Lost, did.Swallowed, acked, took.Round(time.Millisecond), lease, len(lost), refused, crossed)
}

// Row 14: the one connection on which a worker renews its leases hangs, and others pass. It
// makes another one before the leases are over.
func TestRow14_RenewalsOnAnotherConnection(t *testing.T) { // not beside others: leases of seconds must hold
	const runs, lease = 4, 5 * time.Second
	h := newHoled(t, runs, lease, 250*time.Millisecond)
	h.second = h.worker(t, h.db, runs, 2)
	first := make(map[string]time.Time)
	await(t, "a renewal", func() bool { // just after it the leases are long enough to wait for one that hangs
		renewed := 0
		for _, run := range h.runs {
			at := info(t, h.client, run.ID()).WakeAt
			if was, ok := first[run.ID()]; !ok {
				first[run.ID()] = at
			} else if at.After(was) {
				renewed++
			}
		}
		return renewed == runs
	})
	h.p.swallow(false)
	cutAt := time.Now()
	h.finish(t)
	took := time.Since(cutAt)
	did := h.p.brew(weather{})
	if did.Lost == 0 || did.Swallowed == 0 || took < lease {
		t.Errorf("the fault did not occur: %+v, and the runs took %v", did, took)
	}
	judgeSteady(t, h.l)
	onePerStep(t, h.db, runs*longSteps)
	changed := 0
	for _, run := range h.runs {
		if i := info(t, h.client, run.ID()); i.Epoch != 1 {
			changed++
		}
	}
	if changed > 0 {
		t.Errorf("%d runs have changed hands", changed)
	}
	t.Logf("runs=%d connections_lost=%d bytes_lost=%d took=%v lease=%v leases_lost=%d", runs, did.Lost, did.Swallowed, took.Round(time.Millisecond), lease, changed)
}

// takeover returns how many checkpoints of the first worker were acknowledged after its
// renewals were cut off, and how long after that another one began a step.
func takeover(t *testing.T, l ledger, first int, cutAt time.Time) (acked int, took time.Duration) {
	t.Helper()
	for _, e := range l.read(t) {
		switch {
		case e.Pid == first && e.At.After(cutAt) && strings.HasPrefix(e.Step, "ack "):
			acked++
		case e.Pid != first && took == 0:
			took = e.At.Sub(cutAt)
		}
	}
	return acked, took
}

// oneOwnerAtATime asserts that, of the steps of each run, none was written by an epoch
// before that of an earlier step, and that no step ran again that was acknowledged. One
// exception is the fence's own: what was in flight while the other worker claimed the run, so
// its first step there at most. It returns these.
func oneOwnerAtATime(t *testing.T, db database, l ledger) (inFlight int) {
	t.Helper()
	schema := pgx.Identifier{db.Schema}.Sanitize()
	epochs := make(map[string]int32)
	latest, seconds := make(map[string]int32), 0
	for _, row := range sql(t, session(t, db.Where), "SELECT r.name, s.name, (s.epoch >> 32)::integer FROM "+schema+".step s JOIN "+schema+".run r ON r.id = s.run_id ORDER BY 1, 2") {
		run, step, epoch := row[0].(string), row[1].(string), row[2].(int32)
		if epoch < latest[run] {
			t.Errorf("%s of %s was written by epoch %d, after %d", step, run, epoch, latest[run])
		}
		if latest[run] != 0 && epoch > latest[run] {
			seconds++
		}
		epochs[run+"/"+step], latest[run] = epoch, epoch
	}
	acked, executed := make(map[string]int), make(map[string]bool)
	for _, e := range l.read(t) {
		if step, ok := strings.CutPrefix(e.Step, "ack "); ok {
			if acked[e.Run+"/"+step] == 0 {
				acked[e.Run+"/"+step] = e.Pid
			}
			continue
		}
		key, owner := e.Run+"/"+e.Step, fmt.Sprint(e.Run, e.Pid)
		if by := acked[key]; by != 0 {
			if executed[owner] || by == e.Pid || epochs[key] == latest[e.Run] {
				t.Errorf("%s ran again after it was acknowledged", key)
			}
			inFlight++
		}
		executed[owner] = true
	}
	if seconds == 0 {
		t.Error("no run had a second owner")
	}
	return inFlight
}
