package durable_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/testsize"
	"github.com/seed8ec063be/durable/sqlite"
)

// If a recorded history is changed at random, the engine neither panics nor continues with a wrong value. The run diverges,
// fails, continues to wait, or completes with the result that it would have had.
func FuzzMutatedHistory(f *testing.F) {
	child := durable.Define("child", func(c *durable.Ctx, n int) (int, error) {
		return c.Step("work", func(context.Context) (int, error) { return n + 1, nil })
	})
	w := durable.Define("parent", func(c *durable.Ctx, n int) (string, error) { return everything(c, child, n) }, durable.OnDrift(durable.DriftFails))
	recorded := record(f, w, child)
	for op := range byte(len(damages)) {
		f.Add([]byte{op, op, 0})
		if testsize.IsFull() {
			f.Add([]byte{op, op + 5, 3, op + 1, op + 2, 1})
		}
	}
	f.Fuzz(func(t *testing.T, changes []byte) {
		path := filepath.Join(t.TempDir(), "durable.db")
		if err := os.WriteFile(path, recorded.file, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := sqlite.Open(path, sqlite.Synchronous(sqlite.Normal))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		moved := false // the engine cannot detect a valid value that was moved to another name
		for n := 0; len(changes) >= 3 && n < 6; n++ {
			d, name := damages[int(changes[0])%len(damages)], recorded.names[int(changes[1])%len(recorded.names)]
			if d.spares == nil || !d.spares(name) {
				// Two changes may result in the same key: then the database refuses the second one.
				_, err := s.Writer().ExecContext(t.Context(), d.sql, name, d.values[int(changes[2])%len(d.values)])
				moved = moved || d.moves && err == nil
			}
			changes = changes[3:]
		}
		e := engineOn(t, s, w, child)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		got, err := w.Call(ctx, e, 1, durable.ID("run"))
		switch {
		case errors.Is(err, durable.ErrPanic):
			t.Errorf("it panicked: %v", err)
		case err == nil && got != recorded.result && !moved:
			t.Errorf("got %s, want %s, ErrDiverged or a failure", got, recorded.result)
		}
	})
}

// everything makes one durable call of each kind.
func everything(c *durable.Ctx, child *durable.Workflow[int, int], n int) (string, error) {
	one, err := c.Step("one", func(context.Context) (int, error) { return n + 1, nil })
	if err != nil {
		return "", err
	}
	text, err := c.Step("text", func(context.Context) (string, error) { return fmt.Sprint("of ", one), nil }, durable.Retry(durable.Fixed(time.Millisecond, 3)))
	if err != nil {
		return "", err
	}
	if err := c.Sleep("nap", time.Millisecond); err != nil {
		return "", err
	}
	once, err := c.Step("once", func(context.Context) (float64, error) { return 1.5, nil }, durable.AtMostOnce())
	if err != nil {
		return "", err
	}
	heard, err := c.Receive[int]("heard")
	if err != nil {
		return "", err
	}
	squares, err := c.Map("squares", []int{1, 2, 3}, func(_ context.Context, i int) (int, error) { return i * i, nil })
	if err != nil {
		return "", err
	}
	branch := func(name string) *durable.Future[int] {
		return c.Go(name, func(c *durable.Ctx) (int, error) {
			return c.Step("inside", func(context.Context) (int, error) { return 7, nil })
		})
	}
	both, err := durable.All(branch("left"), branch("right"))
	if err != nil {
		return "", err
	}
	kid, err := c.Child("kid", child, 5)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(one, text, once, heard, squares, both, kid), nil
}

// recording is a database file with a run and its whole history. A worker can claim the run.
type recording struct {
	file   []byte
	names  []string // the names of its checkpoints
	result string
}

func record(f *testing.F, w *durable.Workflow[int, string], child durable.Definition) (r recording) {
	f.Helper()
	path := filepath.Join(f.TempDir(), "durable.db")
	s, err := sqlite.Open(path)
	if err != nil {
		f.Fatal(err)
	}
	e := engineOn(f, s, w, child)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := w.Start(ctx, e, 1, durable.ID("run")); err != nil {
		f.Fatal(err)
	}
	for range 2 { // if a change removes the receive's row, the second signal is there to be received
		if err := e.Signal(ctx, "run", "heard", 9); err != nil {
			f.Fatal(err)
		}
	}
	if r.result, err = w.Call(ctx, e, 1, durable.ID("run")); err != nil {
		f.Fatal(err)
	}
	history, err := e.History(ctx, "run")
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range history {
		r.names = append(r.names, c.Name)
	}
	// This is the state that a process leaves if it is killed before the end of the run is written.
	if _, err := s.Writer().ExecContext(ctx, `UPDATE durable_run SET status = 1, wake_at = created_at, output = NULL, ended_at = NULL WHERE name = 'run'`); err != nil {
		f.Fatal(err)
	}
	if err := s.Close(); err != nil { // moves the write-ahead log into the file
		f.Fatal(err)
	}
	if r.file, err = os.ReadFile(path); err != nil {
		f.Fatal(err)
	}
	return r
}

// damage is a way to change a checkpoint: a statement with the checkpoint's name and a value as parameters.
type damage struct {
	sql    string
	values []any
	moves  bool // it may put a value at a name where another value of the same type belongs
	// spares reports whether a checkpoint is not changed, because the run would only wait.
	spares func(name string) bool
}

var damages = []damage{
	{sql: `DELETE FROM durable_step WHERE name = ? AND ? = 0`, values: []any{0}, spares: func(name string) bool { return name == "kid" }},
	{sql: `UPDATE durable_step SET kind = ?2 WHERE name = ?1`, values: []any{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1, 32767}},
	{sql: `UPDATE durable_step SET status = ?2 WHERE name = ?1`, values: []any{1, 2, 4, 0, 5, -1}, spares: func(name string) bool { return name == "kid" || name == "work" }},
	{sql: `UPDATE durable_step SET attempt = ?2 WHERE name = ?1`, values: []any{0, 2, -1, 2147483647}},
	{sql: `UPDATE durable_step SET epoch = ?2 WHERE name = ?1`, values: []any{0, 2, -1, 2147483647}},
	{sql: `UPDATE durable_step SET output = ?2 WHERE name = ?1`, values: []any{
		nil, []byte(`null2`), []byte(`{`), []byte(`[[]]`), []byte("\xff"), []byte(`{"a":{}}`), []byte(`true`), []byte(`1e400`),
	}},
	{sql: `UPDATE durable_step SET output = ?2 WHERE name = ?1`, moves: true, values: []any{[]byte(`0`), []byte(`3`), []byte(`""`), []byte(`null`), []byte(`-1`), []byte(`1e3`), []byte(`99999999999999999999`)}},
	{sql: `UPDATE durable_step SET error = ?2 WHERE name = ?1`, values: []any{nil, []byte(`{}`), []byte(`{"message":"no"}`), []byte("\xff"), []byte(`[]`), []byte(`{"codes":[null]}`)}},
	{sql: `UPDATE durable_step SET name = ?2 WHERE name = ?1`, moves: true, values: []any{
		"one", "text", "nap", "heard", "squares", "squares\x1f1", "squares\x1f7", "left\x1finside", "right", "\x1f", "", "\xff", "a\x00", "kid\x1fwork",
	}, spares: func(name string) bool { return name == "kid" }},
	{sql: `UPDATE durable_step SET next_at = ?2 WHERE name = ?1`, values: []any{nil, 0, -1, 1}},
	{sql: `UPDATE durable_step SET ended_at = ?2, started_at = coalesce(?2, 0) WHERE name = ?1`, values: []any{nil, 0, -1, int64(1) << 62}},
	{sql: `UPDATE durable_step SET status = 4, error = ?2 WHERE name = ?1`, values: []any{nil, []byte(`{"message":"no"}`), []byte(`{"codes":["durable.panic2"]}`), []byte(`x`)}},
}
