package durable_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/codec"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// bothCodecs returns a codec that compresses, and encrypts with the first of the keys. A key's secret is made of its ID.
func bothCodecs(t testing.TB, keyIDs ...string) durable.Codec {
	t.Helper()
	keys := make([]codec.Key, len(keyIDs))
	for i, id := range keyIDs {
		keys[i] = codec.Key{ID: id, Secret: bytes.Repeat([]byte(id), codec.KeySize)[:codec.KeySize]}
	}
	encryption, err := codec.Encrypt(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return codec.Chain(codec.Compress(), encryption)
}

// rawDatabase is a store whose tables a test reads and changes.
type rawDatabase struct {
	durable.Store
	begin  func(ctx context.Context) (rawTx, error)
	dump   func(ctx context.Context) (string, error) // every value of every table
	exec   func(ctx context.Context, sql string) (int64, error)
	prefix string // of the names of tables
}

// rawTx is a transaction of a user.
type rawTx struct {
	start  func(e *durable.Engine, w *durable.Workflow[string, string], in string, opts ...durable.StartOption) error
	signal func(e *durable.Engine, id, name string, value any) error
	commit func() error
}

func onRawDatabases(t *testing.T, test func(t *testing.T, d *rawDatabase)) {
	t.Run("sqlite", func(t *testing.T) {
		s := openFile(t)
		db := s.(*sqlite.Store).Writer()
		test(t, &rawDatabase{
			Store: s, prefix: "durable_",
			begin: func(ctx context.Context) (rawTx, error) {
				tx, err := db.BeginTx(ctx, nil)
				if err == nil {
					t.Cleanup(func() { _ = tx.Rollback() }) // a test that failed in between
				}
				return rawTx{
					start: func(e *durable.Engine, w *durable.Workflow[string, string], in string, opts ...durable.StartOption) error {
						_, err := sqlite.StartTx(ctx, tx, e, w, in, opts...)
						return err
					},
					signal: func(e *durable.Engine, id, name string, value any) error {
						return sqlite.SignalTx(ctx, tx, e, id, name, value)
					},
					commit: func() error { return tx.Commit() },
				}, err
			},
			dump: func(ctx context.Context) (string, error) { return dumpFile(ctx, db) },
			exec: func(ctx context.Context, statement string) (int64, error) {
				done, err := db.ExecContext(ctx, statement)
				if err != nil {
					return 0, err
				}
				return done.RowsAffected()
			},
		})
	})
	t.Run("postgres", func(t *testing.T) {
		pool, err := pgxpool.New(within(t), pgtest.URL(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		schema := pgtest.Schema(t)
		s, err := postgres.New(pool, postgres.Schema(schema))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		test(t, &rawDatabase{
			Store: s, prefix: pgx.Identifier{schema}.Sanitize() + ".",
			begin: func(ctx context.Context) (rawTx, error) {
				tx, err := pool.Begin(ctx)
				if err == nil {
					t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
				}
				return rawTx{
					start: func(e *durable.Engine, w *durable.Workflow[string, string], in string, opts ...durable.StartOption) error {
						_, err := postgres.StartTx(ctx, tx, e, w, in, opts...)
						return err
					},
					signal: func(e *durable.Engine, id, name string, value any) error {
						return postgres.SignalTx(ctx, tx, e, id, name, value)
					},
					commit: func() error { return tx.Commit(ctx) },
				}, err
			},
			dump: func(ctx context.Context) (string, error) { return dumpSchema(ctx, pool, schema) },
			exec: func(ctx context.Context, statement string) (int64, error) {
				tag, err := pool.Exec(ctx, statement)
				return tag.RowsAffected(), err
			},
		})
	})
}

func dumpFile(ctx context.Context, db *sql.DB) (string, error) {
	var tables []string
	rows, err := db.QueryContext(ctx, "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'durable_%'")
	if err != nil {
		return "", err
	}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return "", err
		}
		tables = append(tables, name)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return "", err
	}
	var all strings.Builder
	for _, table := range tables {
		rows, err := db.QueryContext(ctx, "SELECT * FROM "+table)
		if err != nil {
			return "", err
		}
		columns, err := rows.Columns()
		if err != nil {
			return "", err
		}
		values, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(targets...); err != nil {
				return "", err
			}
			writeValues(&all, table, columns, values)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return "", err
		}
	}
	return all.String(), nil
}

func dumpSchema(ctx context.Context, pool *pgxpool.Pool, schema string) (string, error) {
	rows, err := pool.Query(ctx, "SELECT table_name::text FROM information_schema.tables WHERE table_schema = $1 AND table_type = 'BASE TABLE'", schema)
	if err != nil {
		return "", err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, table := range tables {
		rows, err := pool.Query(ctx, "SELECT * FROM "+pgx.Identifier{schema, table}.Sanitize())
		if err != nil {
			return "", err
		}
		for rows.Next() {
			values, err := rows.Values()
			if err != nil {
				return "", err
			}
			var columns []string
			for _, f := range rows.FieldDescriptions() {
				columns = append(columns, f.Name)
			}
			writeValues(&all, table, columns, values)
		}
		if err := rows.Err(); err != nil {
			return "", err
		}
	}
	return all.String(), nil
}

func writeValues(to *strings.Builder, table string, columns []string, values []any) {
	for i, v := range values {
		if b, ok := v.([]byte); ok {
			v = string(b)
		}
		fmt.Fprintf(to, "%s.%s: %v\n", table, columns[i], v)
	}
}

// linesWith returns the lines of a dump with the text.
func linesWith(dump, text string) (lines []string) {
	for line := range strings.Lines(dump) {
		if strings.Contains(line, text) {
			lines = append(lines, fmt.Sprintf("%.200q", line))
		}
	}
	return slices.Compact(lines)
}

const secretText = "Xyzzy-Plugh-4711"

// Nothing of a user's values is readable in any table, whatever a run does with them. The same runs without a codec show that the test
// would find it.
func TestNoPayloadIsReadable(t *testing.T) {
	onRawDatabases(t, func(t *testing.T, d *rawDatabase) {
		useSecrets(t, d, bothCodecs(t, "key-1"))
		dump := read(d.dump(within(t)))(t)
		if lines := linesWith(dump, secretText); len(lines) > 0 {
			t.Errorf("%d values are readable:\n%s", len(lines), strings.Join(lines, "\n"))
		}
		if len(linesWith(dump, "key-1")) < 20 {
			t.Error("few payloads are encrypted")
		}
	})
	onRawDatabases(t, func(t *testing.T, d *rawDatabase) {
		useSecrets(t, d, nil)
		if lines := linesWith(read(d.dump(within(t)))(t), secretText); len(lines) < 20 {
			t.Errorf("without a codec, only %d values are readable:\n%s", len(lines), strings.Join(lines, "\n"))
		}
	})
}

// useSecrets has runs take the secret text everywhere where a payload is stored.
func useSecrets(t *testing.T, d *rawDatabase, c durable.Codec) {
	ctx := within(t)
	boom := errors.New("declined: " + secretText)
	child := durable.Define("child", func(_ *durable.Ctx, in string) (string, error) { return in + " of a child", nil })
	badChild := durable.Define("bad child", func(_ *durable.Ctx, in string) (string, error) { return "", errors.New(in) })
	all := durable.Define("all", func(c *durable.Ctx, in string) (string, error) {
		if err := c.Compensate("undo", func(context.Context) error { return boom }); err != nil {
			return "", err
		}
		out, err := c.Step("step", func(context.Context) (string, error) { return in + "!", nil })
		if err != nil {
			return "", err
		}
		if err := c.Do("flaky", func(ctx context.Context) error {
			if durable.Attempt(ctx) < 3 { // the attempts may be made in several executions
				return boom
			}
			return nil
		}, durable.Retry(durable.RetryPolicy{Attempts: 3, Initial: time.Millisecond})); err != nil {
			return "", err
		}
		if _, err := c.Child("kid", child, in); err != nil {
			return "", err
		}
		if _, err := c.Child("bad kid", badChild, in); err == nil {
			return "", errors.New("the child did not fail")
		}
		items, err := c.Map("items", []string{in, in + "2"}, func(_ context.Context, item string) (string, error) { return item, nil })
		if err != nil {
			return "", err
		}
		word, err := c.Receive[string]("word")
		if err != nil {
			return "", err
		}
		if again, err := c.Receive[string]("again"); err != nil || again == "fail" {
			return "", errors.Join(boom, err)
		}
		return out + word + items[0], nil
	})
	next := durable.Define("next", func(c *durable.Ctx, in string) (string, error) {
		if !strings.HasSuffix(in, ".") {
			return "", c.ContinueAsNew(in + ".")
		}
		if _, err := c.Step("s", func(context.Context) (string, error) { return in, nil }); err != nil {
			return "", err
		}
		panic(in)
	})
	e := engineAsGiven(t, d.Store, durable.Config{Workflows: []durable.Definition{all, child, badChild, next}, Codec: c, ParkAfter: time.Millisecond})
	stop := running(t, e)
	defer stop()
	wantErr := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	tx := read(d.begin(ctx))(t)
	wantErr("StartTx", tx.start(e, all, secretText, durable.ID("fails")), nil)
	wantErr("StartTx", tx.start(e, all, secretText, durable.Debounce("k", time.Hour, 2*time.Hour)), nil)
	wantErr("commit", tx.commit(), nil)
	if _, err := all.Start(ctx, e, secretText+"again", durable.Debounce("k", time.Hour, 2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	good := read(all.Start(ctx, e, secretText, durable.ID("good")))(t)
	for id, word := range map[string]string{"good": "go", "fails": "fail"} {
		awaitStatus(t, e, id, durable.StatusWaiting)
		wantErr("signal", e.Signal(ctx, id, "word", secretText), nil)
		tx := read(d.begin(ctx))(t)
		wantErr("SignalTx", tx.signal(e, id, "again", word), nil)
		wantErr("SignalTx", tx.signal(e, id, "never received", secretText), nil)
		wantErr("commit", tx.commit(), nil)
	}
	if out := read(good.Result(ctx))(t); out != secretText+"!"+secretText+secretText {
		t.Errorf("the result is %q", out)
	}
	awaitStatus(t, e, "fails", durable.StatusFailed)
	if info := read(e.Get(ctx, "fails"))(t); !strings.Contains(info.Err.Error(), secretText) {
		t.Errorf("the error of the run is %v", info.Err)
	}
	if _, err := next.Start(ctx, e, secretText, durable.ID("next")); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, e, "next", durable.StatusFailed)
	if _, err := e.Override(ctx, "next", "s", secretText+"override"); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, e, "next", durable.StatusFailed)
	if _, err := e.Fork(ctx, "good", durable.From("flaky"), durable.NewID("fork")); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, e, "fork", durable.StatusWaiting)
	wantErr("SetSchedule", e.SetSchedule(ctx, all.Schedule(secretText, durable.Schedule{Name: "nightly", Every: time.Second})), nil)
	waitFor(t, func() bool {
		fires, err := e.ScheduleFires(ctx, "nightly", durable.Page{Limit: 1})
		return err == nil && len(fires) == 1
	})
	schedules := read(e.Schedules(ctx))(t)
	if in := string(schedules[0].Schedule.Input.(jsontext.Value)); in != `"`+secretText+`"` {
		t.Errorf("the input of the schedule is %s", in)
	}
	wantErr("DeleteSchedule", e.PauseSchedule(ctx, "nightly"), nil)
	holdWithSecret(t, d, c)
}

// holdWithSecret holds a run because a value with the secret does not decode into what newer code wants.
func holdWithSecret(t *testing.T, d *rawDatabase, c durable.Codec) {
	ctx := within(t)
	old := durable.Define("typed", func(c *durable.Ctx, _ int) (string, error) {
		if _, err := c.Step("s", func(context.Context) (map[string]string, error) {
			return map[string]string{secretText: secretText}, nil
		}); err != nil {
			return "", err
		}
		return c.Receive[string]("go")
	})
	e := engineAsGiven(t, d.Store, durable.Config{Workflows: []durable.Definition{old}, Codec: c, ParkAfter: time.Millisecond})
	stop := running(t, e)
	if _, err := old.Start(ctx, e, 0, durable.ID("held")); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, e, "held", durable.StatusWaiting)
	stop()
	if err := e.Signal(ctx, "held", "go", "on"); err != nil {
		t.Fatal(err)
	}
	newer := durable.Define("typed", func(c *durable.Ctx, _ int) (string, error) {
		_, err := c.Step("s", func(context.Context) (map[string]map[string]string, error) { return nil, nil })
		return "", err
	})
	defer running(t, engineAsGiven(t, d.Store, durable.Config{Workflows: []durable.Definition{newer}, Codec: c}))()
	awaitStatus(t, e, "held", durable.StatusPaused)
	info := read(e.Get(ctx, "held"))(t)
	if all := read(e.Divergences(ctx, "held"))(t); len(all) != 1 || !strings.Contains(all[0].Reason, "decode") || !strings.Contains(info.Reason, "decode") {
		t.Errorf("the run is held because of %q, %+v", info.Reason, all)
	}
	reasons := func(events []durable.Event, err error) (found []string) {
		for _, event := range events {
			if event.Type == durable.EventPaused && event.ID == "held" {
				found = append(found, event.New)
			}
		}
		return found
	}
	waitFor(t, func() bool {
		want := []string{info.Reason}
		return slices.Equal(reasons(e.LatestEvents(ctx, durable.Page{})), want) && slices.Equal(reasons(e.Events(ctx, durable.Page{Limit: 1000})), want)
	})
}
