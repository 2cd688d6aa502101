package postgres

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// whole returns a batch with an item in every section.
func whole(t *testing.T, s *database) (*store.Batch, []uuid.UUID) {
	t.Helper()
	at := now(t, s)
	a, b, c := running(uuid.New(), at), running(uuid.New(), at), pending(at)
	marker := done(b.UUID, "known", at)
	marker.Step.Status = store.StepStarted
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{{Run: a}, {Run: b}}, Steps: []*store.StepWrite{marker}})
	known := done(b.UUID, "known", at)
	known.RowExists = true
	return &store.Batch{
		Starts:        []*store.StartWrite{{Run: c}},
		Steps:         []*store.StepWrite{done(a.UUID, "fresh", at), known},
		OwnershipEnds: []*store.OwnershipEnd{finish(a.UUID, at)},
	}, []uuid.UUID{a.UUID, b.UUID, c.UUID}
}

// family returns a whole batch with tags, a receive, a signal, a child that starts and a child that ends.
func family(t *testing.T, s *database) (*store.Batch, []uuid.UUID) {
	t.Helper()
	b, runs := whole(t, s)
	at := now(t, s)
	parent := running(uuid.New(), at)
	begin(t, s, &store.StartWrite{Run: parent})
	ends, begins := childOf(parent.UUID, "ends", at), childOf(parent.UUID, "begins", at)
	begin(t, s, ends)
	begins.Tags = []store.Tag{{Key: "k", Value: "v"}}
	end := finish(ends.Run.UUID, at)
	end.ParentToWake, end.Now = ends.Run.Parent, at
	b.Starts = append(b.Starts, begins)
	b.Receives = append(b.Receives, receive(parent.UUID, "wait", "go", at))
	b.Signals = append(b.Signals, signal(parent.UUID, "go", "1", at))
	b.OwnershipEnds = append(b.OwnershipEnds, end)
	return b, append(runs, parent.UUID, ends.Run.UUID, begins.Run.UUID)
}

// TestNoCallerWaitsForTheLocksOfAnother: a batch that changes only its own rows has only the statements of its
// sections. A batch that affects other runs has one more, for the locks.
func TestNoCallerWaitsForTheLocksOfAnother(t *testing.T) {
	s := open(t, "cache_statement")
	plain, _ := whole(t, s)
	all, _ := family(t, s)
	for what, c := range map[string]struct {
		batch *store.Batch
		want  []string
	}{
		"plain": {plain, []string{s.statements.runInsertGeneratedID, s.statements.stepInsertOne, s.statements.stepUpdate, s.statements.runFinishOne, s.statements.notify}},
		"family": {all, []string{
			s.statements.runsLockForBatch, s.statements.runInsertAny, s.statements.stepInsertOne, s.statements.stepUpdate,
			s.statements.signalReceive, s.statements.signalInsert, s.statements.runFinish, s.statements.runWake, s.statements.notify,
		}},
		"counted end": {&store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: uuid.New(), ParentToWake: all.OwnershipEnds[1].ParentToWake, CountingCall: "kids", Status: store.Completed, EndedAt: time.Now()}}}, []string{
			s.statements.runsLockForBatch, s.statements.runFinishOne, s.statements.childEndsCountAndWakeParents,
		}},
		"a start far off": {&store.Batch{Starts: []*store.StartWrite{{Run: store.Run{Status: store.Pending, WakeAt: time.Time{}.Add(maxStartDelayToNotify)}}}}, []string{s.statements.runInsertOne}},
		"a start soon":    {&store.Batch{Starts: []*store.StartWrite{{Run: store.Run{Status: store.Pending, WakeAt: time.Time{}.Add(maxStartDelayToNotify - 1)}}}}, []string{s.statements.runInsertOne, s.statements.notify}},
		"several steps":   {&store.Batch{Steps: []*store.StepWrite{done(uuid.New(), "a", time.Time{}), done(uuid.New(), "a", time.Time{})}}, []string{s.statements.stepInsert}},
		"park":            {&store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: uuid.New(), ParentToWake: all.OwnershipEnds[1].ParentToWake, Status: store.Waiting}}}, []string{s.statements.runEndOwnership}},
	} {
		var w sortedBatch
		var pipe pgx.Batch
		w.addBatch(c.batch)
		s.addStatements(&pipe, &w)
		var got []string
		for _, q := range pipe.QueuedQueries {
			got = append(got, q.SQL)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %d statements, not %d, or others: %q", what, len(got), len(c.want), got)
		}
	}
}

// TestFlushIsOneTransactionAndOneRoundTrip reads from the rows which transaction wrote them, and counts
// the messages of the connection.
func TestFlushIsOneTransactionAndOneRoundTrip(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			cfg, err := pgxpool.ParseConfig(with(pgtest.URL(t), "default_query_exec_mode="+mode))
			if err != nil {
				t.Fatal(err)
			}
			var writes atomic.Int64
			dial := cfg.ConnConfig.DialFunc
			cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				return &counted{conn, &writes}, err
			}
			s := openOver(t, cfg)
			warm, _ := family(t, s)
			commit(t, s, warm)

			b, runs := family(t, s)
			before := writes.Load()
			commit(t, s, b)
			if got := writes.Load() - before; got != 1 {
				t.Errorf("a flush was written to the server in %d pieces, not 1", got)
			}
			var texts []string // types that every mode can encode
			for _, id := range runs {
				texts = append(texts, id.String())
			}
			var wrote int
			err = s.userPool.QueryRow(t.Context(), `
				SELECT count(DISTINCT xmin::text) FROM (
				    SELECT xmin FROM durable.run WHERE id = ANY ($1) AND (id <> $2)
				    UNION ALL SELECT xmin FROM durable.step WHERE run_id = ANY ($1)
				    UNION ALL SELECT xmin FROM durable.signal WHERE run_id = ANY ($1)
				    UNION ALL SELECT xmin FROM durable.tag WHERE run_id = ANY ($1)
				    UNION ALL SELECT xmin FROM durable.event WHERE run_id = ANY ($1)
				) AS row`, texts, texts[1]).Scan(&wrote)
			if err != nil {
				t.Fatal(err)
			}
			if wrote != 1 {
				t.Errorf("a flush was %d transactions, not 1", wrote)
			}
			if b.Starts[1].Outcome != store.Written || b.Receives[0].Outcome != store.Written || b.Signals[0].Outcome != store.Written || b.OwnershipEnds[1].Outcome != store.Written {
				t.Errorf("outcomes %d, %d, %d, %d", b.Starts[1].Outcome, b.Receives[0].Outcome, b.Signals[0].Outcome, b.OwnershipEnds[1].Outcome)
			}
			for _, item := range b.Steps {
				if item.Outcome != store.Written {
					t.Errorf("step %s: outcome %d", item.Step.Name, item.Outcome)
				}
			}
		})
	}
}

type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c *counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// TestBadValueUndoesTheWholeFlush puts the bad value last, so that everything before it has been applied.
// The connection can be used for the next flush.
func TestBadValueUndoesTheWholeFlush(t *testing.T) {
	for _, mode := range append([]string{"simple_protocol"}, modes...) {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := openBeside(t, mode)
			b, runs := whole(t, s)
			b.OwnershipEnds[0].HoldReason = "not UTF-8: \xff"
			err := s.Commit(t.Context(), b)
			if !errors.Is(err, store.ErrBadData) {
				t.Fatalf("the error is %v", err)
			}
			got, err := s.GetRuns(t.Context(), []store.RunRef{{UUIDOrName: runs[0].String()}, {UUIDOrName: runs[2].String()}})
			if err != nil {
				t.Fatal(err)
			}
			if got[0].Status != store.Running || got[1] != nil {
				t.Errorf("part of the flush was kept: %v", got)
			}
			b.OwnershipEnds[0].HoldReason = ""
			commit(t, s, b)
			if b.Starts[0].Outcome != store.Written || b.OwnershipEnds[0].Outcome != store.Written {
				t.Errorf("the flush without the bad value: outcomes %d and %d", b.Starts[0].Outcome, b.OwnershipEnds[0].Outcome)
			}
		})
	}
}

// TestHostileDefaults is Row 16 of package faults for the store: the database's default settings are for
// users.
func TestHostileDefaults(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			first := openBeside(t, mode)
			for _, set := range []string{
				"statement_timeout = '5s'", "lock_timeout = '100ms'", "idle_in_transaction_session_timeout = '100ms'",
				"default_transaction_isolation = 'serializable'", "default_transaction_read_only = on", "idle_session_timeout = '100ms'",
				"bytea_output = 'escape'", "\"DateStyle\" = 'German'", "array_nulls = off",
			} {
				sql := "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET " + strings.ReplaceAll(set, "'", "''") + "', current_database()); END $$"
				if _, err := first.userPool.Exec(t.Context(), sql); err != nil {
					t.Fatal(set, err)
				}
			}
			s := openAt(t, first.userPool.Config().ConnString(), WithoutMigrations())
			b, runs := whole(t, s)
			b.Starts = append(b.Starts, &store.StartWrite{Run: pending(now(t, s))}) // several: as arrays, with NULLs in them
			commit(t, s, b)
			var isolation, timeout string
			conn, err := s.enginePool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release()
			if mode == "cache_statement" {
				err = conn.QueryRow(t.Context(), "SELECT current_setting('transaction_isolation'), current_setting('statement_timeout')").Scan(&isolation, &timeout)
				if err != nil || isolation != "read committed" || timeout != "30s" {
					t.Errorf("the session runs with %q, %q, %v", isolation, timeout, err)
				}
			}
			history, err := s.History(t.Context(), runs[1])
			if err != nil || len(history) != 1 || string(history[0].Output) != `{"ok":true}` {
				t.Errorf("the history is %v, %v", history, err)
			}
			err = pgx.BeginFunc(t.Context(), s.userPool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), "SET TRANSACTION READ WRITE"); err != nil {
					return err
				}
				at := now(t, s)
				if err := s.startRunsInTx(t.Context(), tx, []*store.StartWrite{{Run: pending(at)}, {Run: pending(at)}}); err != nil {
					return err
				}
				var nulls string
				err := tx.QueryRow(t.Context(), "SELECT current_setting('array_nulls')").Scan(&nulls)
				if nulls != "off" {
					t.Errorf("array_nulls of the user's transaction was off, and is %q after a start", nulls)
				}
				return err
			})
			if err != nil {
				t.Errorf("a start in a transaction of the user: %v", err)
			}
		})
	}
}

// TestHeldNameSetsNeighboursFree starts a run whose name another transaction has inserted and not
// committed. Alone it fails; a batch with it fails with an error that makes the journal divide it.
func TestHeldNameSetsNeighboursFree(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	tx, err := s.userPool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // the test is over if it fails
	taken := pending(at)
	if err := s.startRunsInTx(t.Context(), tx, []*store.StartWrite{{Run: taken}}); err != nil {
		t.Fatal(err)
	}
	again := taken
	again.UUID = store.NewUUID(store.ShardOf(taken.UUID))
	b := &store.Batch{Starts: []*store.StartWrite{{Run: again}, {Run: pending(at)}}}
	err = s.Commit(t.Context(), b)
	if !errors.Is(err, store.ErrLocked) || errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("the error is %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	commit(t, s, b)
	if got := b.Starts[0]; got.Outcome != store.AlreadyRecorded || got.ExistingRun.UUID != taken.UUID {
		t.Errorf("the held name: outcome %d", got.Outcome)
	}
	if got := b.Starts[1]; got.Outcome != store.Written {
		t.Errorf("the neighbour: outcome %d", got.Outcome)
	}
}

// TestTwoStartsOfOneNameInOneBatch: the second start adopts the row of the first.
func TestTwoStartsOfOneNameInOneBatch(t *testing.T) {
	s := open(t, "cache_statement")
	first := pending(now(t, s))
	second := first
	second.UUID = store.NewUUID(store.ShardOf(first.UUID))
	b := &store.Batch{Starts: []*store.StartWrite{{Run: first}, {Run: second}}}
	commit(t, s, b)
	if b.Starts[0].Outcome != store.Written || b.Starts[1].Outcome != store.AlreadyRecorded || b.Starts[1].ExistingRun.UUID != first.UUID {
		t.Errorf("outcomes %d and %d", b.Starts[0].Outcome, b.Starts[1].Outcome)
	}
}

// TestAWriteWithAWrongRowExistsIsCorrected writes over a marker that it does not know, and updates a row that does not
// exist.
func TestAWriteWithAWrongRowExistsIsCorrected(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	run := running(uuid.New(), at)
	marker := done(run.UUID, "marked", at)
	marker.Step.Status = store.StepStarted
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{{Run: run}}, Steps: []*store.StepWrite{marker}})
	missing := done(run.UUID, "missing", at)
	missing.RowExists = true
	b := &store.Batch{Steps: []*store.StepWrite{done(run.UUID, "marked", at), missing}}
	commit(t, s, b)
	commit(t, s, &store.Batch{Steps: []*store.StepWrite{marker}}) // late
	history, err := s.History(t.Context(), run.UUID)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range b.Steps {
		if w.Outcome != store.Written {
			t.Errorf("%s: outcome %d", w.Step.Name, w.Outcome)
		}
	}
	if len(history) != 2 || history[0].Status != store.StepCompleted || history[1].Status != store.StepCompleted {
		t.Errorf("the history is %v", history)
	}
	if marker.Outcome != store.AlreadyRecorded {
		t.Errorf("the late marker: outcome %d", marker.Outcome)
	}
}

// TestAFlushThatMeetsARow: a step that has a row rolls back the flush, and all of it is retried: new
// steps are written, fenced steps stay fenced, and existing steps are adopted.
func TestAFlushThatMeetsARow(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	one, two := running(uuid.New(), at), running(uuid.New(), at)
	begin(t, s, &store.StartWrite{Run: one}, &store.StartWrite{Run: two})
	commit(t, s, &store.Batch{Steps: []*store.StepWrite{done(one.UUID, "there", at)}})
	other := done(one.UUID, "there", at)
	other.Step.Output = []byte(`"another value"`)
	replay, fresh, old := done(one.UUID, "there", at), done(two.UUID, "new", at), done(two.UUID, "old", at)
	old.Step.Epoch = store.Epoch{}
	third := running(uuid.New(), at)
	commit(t, s, &store.Batch{
		Starts:        []*store.StartWrite{{Run: third}},
		Steps:         []*store.StepWrite{replay, fresh, old},
		OwnershipEnds: []*store.OwnershipEnd{finish(one.UUID, at)},
	})
	commit(t, s, &store.Batch{Steps: []*store.StepWrite{other}})
	for what, c := range map[string]struct{ got, want store.WriteOutcome }{
		"the replay": {replay.Outcome, store.Written}, "the new step": {fresh.Outcome, store.Written},
		"the old epoch": {old.Outcome, store.Fenced}, "another value": {other.Outcome, store.Fenced},
	} {
		if c.got != c.want {
			t.Errorf("%s: outcome %d, want %d", what, c.got, c.want)
		}
	}
	for _, c := range []struct {
		run  store.Run
		want []string
	}{{one, []string{"there"}}, {two, []string{"new"}}} {
		steps, err := s.History(t.Context(), c.run.UUID)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, step := range steps {
			names = append(names, step.Name)
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("recorded are %q, want %q", names, c.want)
		}
	}
}
