package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
)

// unsuited are settings of a database under which names, times and payloads would be kept or read
// otherwise than they were sent, nothing could be written, and nothing acknowledged would be kept.
var unsuited = map[string]string{
	"client_encoding": "LATIN1", "synchronous_commit": "off", "default_transaction_read_only": "on",
	"DateStyle": "SQL, DMY", "IntervalStyle": "sql_standard", "TimeZone": "America/New_York", "bytea_output": "escape",
	"standard_conforming_strings": "off", "escape_string_warning": "off",
}

// newUnsuited is a database with these settings, and its pool.
func newUnsuited(t *testing.T, settings map[string]string, mode string) (admin *pgx.Conn, pool *pgxpool.Pool) {
	t.Helper()
	url := pgtest.URL(t)
	admin = session(t, url)
	name := sql(t, admin, "SELECT quote_ident(current_database())")[0][0].(string)
	for setting, value := range settings {
		if setting == "DateStyle" { // a list
			sql(t, admin, "ALTER DATABASE "+name+" SET DateStyle = "+value)
			continue
		}
		sql(t, admin, "ALTER DATABASE "+name+" SET "+setting+" = '"+value+"'")
	}
	pool, err := pgxpool.New(t.Context(), with(url, "default_query_exec_mode="+mode))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return admin, pool
}

// waits has every change of durable's tables note, as the last thing before its transaction
// commits, whether that commit waits for the disk.
func waits(t *testing.T, admin *pgx.Conn) (seen func() []string) {
	t.Helper()
	sql(t, admin, "CREATE TABLE commits (what text, waits text)")
	sql(t, admin, `CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN INSERT INTO public.commits VALUES (TG_OP || ' ' || TG_TABLE_NAME, current_setting('synchronous_commit')); RETURN NULL; END $$`)
	for _, table := range []string{"run", "step", "signal", "tag", "event", "worker"} {
		sql(t, admin, "CREATE CONSTRAINT TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON durable."+table+" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note()")
	}
	return func() (all []string) {
		for _, row := range sql(t, admin, "SELECT DISTINCT waits FROM commits ORDER BY 1") {
			all = append(all, row[0].(string))
		}
		return all
	}
}

// Row 42: a database, or a role, whose settings suit no guarantee. In each of pgx's modes, everything works,
// names are kept byte for byte, a transactional step is executed once, and every commit of a
// change of durable's waits for the disk.
func TestRow42_UnsuitedSettings(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "cache_describe", "exec"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			admin, pool := newUnsuited(t, unsuited, mode)
			s, err := postgres.New(pool)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			seen := waits(t, admin)
			everything(t, s, pool)
			abroad(t, s, pool)
			if got := seen(); !slices.Equal(got, []string{"on"}) {
				t.Errorf("commits were made with synchronous_commit %v: %v", got, sql(t, admin, "SELECT what, count(*) FROM commits WHERE waits <> 'on' GROUP BY 1"))
			}
			for _, row := range sql(t, admin, "SELECT name FROM durable.run UNION SELECT name FROM durable.step UNION SELECT name FROM durable.signal") {
				if name := row[0].(string); strings.ContainsAny(name, "Ã¼¶â") {
					t.Errorf("a name was kept as %q", name)
				}
			}
		})
	}
}

// abroad has a run leave memory between a transactional step and a signal, all with names that no
// other encoding has.
func abroad(t *testing.T, s durable.Store, pool *pgxpool.Pool) {
	t.Helper()
	var executed atomic.Int32
	w := durable.Define("größe", func(c *durable.Ctx, in string) (string, error) {
		v, err := postgres.Tx(c, "maß → 中", func(ctx context.Context, tx pgx.Tx) (string, error) {
			executed.Add(1)
			return in, nil
		})
		if err != nil {
			return "", err
		}
		got, err := c.Receive[string]("grün → 中")
		return v + got, err
	})
	e := engineOn(t, s, durable.Config{ParkAfter: time.Millisecond}, w)
	stop := runEngine(t, e)
	defer stop()
	inTransaction(t, pool, func(tx pgx.Tx) error {
		_, err := postgres.StartTx(bounded(t), tx, e, w, "ü", durable.ID("zürich → 中"), durable.Tag("shop.stadt", "zürich"))
		return err
	})
	await(t, "the run to leave memory", func() bool { return info(t, e, "zürich → 中").Status == durable.StatusWaiting })
	inTransaction(t, pool, func(tx pgx.Tx) error {
		return postgres.SignalTx(bounded(t), tx, e, "zürich → 中", "grün → 中", "ö", durable.SignalKey("schlüssel"))
	})
	if v, err := result(t, e, w, "zürich → 中"); err != nil || v != "üö" {
		t.Errorf("the run returned %q, %v", v, err)
	}
	if n := executed.Load(); n != 1 {
		t.Errorf("the transactional step was executed %d times", n)
	}
}

// Stronger values are kept, and weaker ones if the program says so.
func TestRow42_SynchronousCommitIsRaisedOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set  string
		want []string
		opts []postgres.Option
	}{
		{set: "local", want: []string{"local"}},
		{set: "remote_apply", want: []string{"remote_apply"}},
		{set: "off", want: []string{"off"}, opts: []postgres.Option{postgres.AllowAsyncCommit()}},
	} {
		t.Run(c.set, func(t *testing.T) {
			t.Parallel()
			admin, pool := newUnsuited(t, map[string]string{"synchronous_commit": c.set}, "cache_statement")
			s, err := postgres.New(pool, c.opts...)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			seen := waits(t, admin)
			everything(t, s, pool)
			if got := seen(); !slices.Equal(got, c.want) {
				t.Errorf("commits were made with synchronous_commit %v, want %v", got, c.want)
			}
		})
	}
}

// Row 42: the role's synchronous_commit is off, and the server is stopped at once after each
// acknowledgement: what was acknowledged is there.
func TestRow42_AcknowledgedUnderAsynchronousCommit(t *testing.T) {
	t.Parallel()
	server, err := pgtest.Start(t.Context(), pgtest.Options{Settings: map[string]string{"wal_writer_delay": "10s", "autovacuum": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	sql(t, session(t, server.URL()), "ALTER ROLE postgres SET synchronous_commit = off")
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return 0, nil })
	lost := 0
	for i, kind := range []string{"schema", "start", "start in a transaction", "signal in a transaction", "step"} {
		stop := func() {}
		pool, err := pgxpool.New(t.Context(), server.URL())
		if err != nil {
			t.Fatal(err)
		}
		s, err := postgres.New(pool)
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("r-", i)
		e := engineOn(t, s, durable.Config{})
		var missing func(e *durable.Engine) bool
		gone := func(e *durable.Engine) bool {
			_, err := e.Get(bounded(t), id)
			return errors.Is(err, durable.ErrNotFound)
		}
		switch kind {
		case "schema":
			missing = func(*durable.Engine) bool {
				return sql(t, session(t, server.URL()), "SELECT to_regclass('durable.run') IS NULL")[0][0].(bool)
			}
		case "start":
			start(t, e, w, 0, durable.ID(id))
			missing = gone
		case "start in a transaction":
			inTransaction(t, pool, func(tx pgx.Tx) error {
				_, err := postgres.StartTx(bounded(t), tx, e, w, 0, durable.ID(id))
				return err
			})
			missing = gone
		case "signal in a transaction":
			start(t, e, w, 0, durable.ID(id))
			inTransaction(t, pool, func(tx pgx.Tx) error { return postgres.SignalTx(bounded(t), tx, e, id, "go", 1) })
			missing = func(*durable.Engine) bool {
				return sql(t, session(t, server.URL()), "SELECT count(*) FROM durable.signal")[0][0] != int64(1)
			}
		case "step":
			done := make(chan struct{})
			stepping := durable.Define("stepping", func(c *durable.Ctx, _ int) (int, error) {
				if _, err := c.Step("one", func(context.Context) (int, error) { return 1, nil }); err != nil {
					return 0, err
				}
				close(done)
				<-c.Done()
				return 0, durable.ErrSuspended
			})
			e = engineOn(t, s, durable.Config{Grace: -1}, stepping)
			start(t, e, stepping, 0, durable.ID(id))
			stop = runEngine(t, e)
			<-done
			missing = func(e *durable.Engine) bool { return len(history(t, e, id)) == 0 }
		}
		if err := server.Stop(pgtest.Immediate); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(bounded(t)); err != nil {
			t.Fatal(err)
		}
		pool.Close()
		again, err := postgres.Open(bounded(t), server.URL(), postgres.WithoutMigrations())
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if missing(engineOn(t, again, durable.Config{})) {
			lost++
			t.Errorf("what was acknowledged is gone: %s", kind)
		}
		_ = again.Close()
		stop()
		_ = s.Close()
	}
	t.Logf("stops=5 lost=%d", lost)
}
