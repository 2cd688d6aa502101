package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/testsize"
)

// rejection is a state of the database in which it rejects statements. In the texts,
// durable_ is the prefix of the tables on SQLite; on PostgreSQL the schema is in the path.
type rejection struct {
	name         string
	begin, end   string // on PostgreSQL
	begin3, end3 string // on SQLite; empty: it does not exist there
}

// raising is a trigger that rejects what is inserted into the table, with a SQLSTATE.
func raising(table, code string) rejection {
	return rejection{
		name: code + " at " + table,
		begin: fmt.Sprintf(`CREATE FUNCTION raising() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '%s'; END $$;
			CREATE TRIGGER raising BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION raising()`, code, table),
		end: "DROP FUNCTION raising CASCADE",
	}
}

func renamed(table string) rejection {
	return rejection{
		name:   "a renamed table " + table,
		begin:  "ALTER TABLE " + table + " RENAME TO gone",
		end:    "ALTER TABLE gone RENAME TO " + table,
		begin3: "ALTER TABLE durable_" + table + " RENAME TO durable_gone",
		end3:   "ALTER TABLE durable_gone RENAME TO durable_" + table,
	}
}

func revoked(right, table string) rejection {
	return rejection{
		name:  "a revoked " + right + " on " + table,
		begin: "REVOKE " + right + " ON " + table + " FROM CURRENT_USER",
		end:   "GRANT " + right + " ON " + table + " TO CURRENT_USER",
	}
}

func triggered(table string) rejection {
	return rejection{
		name:   "a trigger on " + table,
		begin:  raising(table, "23514").begin,
		end:    raising(table, "23514").end,
		begin3: "CREATE TRIGGER raising BEFORE INSERT ON durable_" + table + " BEGIN SELECT RAISE(ABORT, 'no'); END",
		end3:   "DROP TRIGGER raising",
	}
}

// turn begins or ends the fault.
func (r rejection) turn(t testing.TB, db database, on bool) {
	t.Helper()
	text, text3 := r.begin, r.begin3
	if !on {
		text, text3 = r.end, r.end3
	}
	if db.Kind == "sqlite" {
		outside(t, db, text3, "")
		return
	}
	conn := session(t, db.Where)
	if _, err := conn.PgConn().Exec(bounded(t), "SET search_path = "+db.Schema+"; "+text).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// rejections are one rejection of each kind, and those of the other tables and codes if the tests do everything (see testsize).
var rejections = append([]rejection{
	revoked("INSERT", "step"), revoked("SELECT", "run"),
	renamed("run"),
	triggered("step"),
	raising("step", "53100"), raising("run", "XX001"), raising("signal", "0A000"),
}, testsize.Of([]rejection{
	revoked("UPDATE", "run"), revoked("INSERT", "event"), revoked("INSERT, UPDATE", "signal"),
	renamed("step"), renamed("event"), renamed("signal"),
	raising("step", "53200"), raising("step", "53400"), raising("step", "54000"), raising("step", "P0001"),
}, nil)...)

// owned is a database whose tables belong to a role that is no superuser, so that rights on
// them can be revoked.
func owned(t *testing.T, kind string) database {
	t.Helper()
	if kind == "sqlite" {
		return fresh(t, kind)
	}
	url := pgtest.URL(t)
	admin := session(t, url)
	role := fmt.Sprintf("owner_%d", time.Now().UnixNano())
	name := sql(t, admin, "SELECT current_database()")[0][0].(string)
	sql(t, admin, "CREATE ROLE "+role+" LOGIN PASSWORD 'secret'")
	sql(t, admin, "GRANT CREATE ON DATABASE "+pgx.Identifier{name}.Sanitize()+" TO "+role)
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn, err := pgx.ConnectConfig(context.Background(), cfg)
		if err == nil {
			_, _ = conn.Exec(context.Background(), "REASSIGN OWNED BY "+role+" TO CURRENT_USER; DROP OWNED BY "+role+"; DROP ROLE "+role)
			_ = conn.Close(context.Background())
		}
	})
	return database{Kind: kind, Where: with(url, "user="+role+"&password=secret"), Schema: "durable"}
}

// all does everything that leaves a row.
func all(l ledger, db database) (parent, kid *durable.Workflow[int, int]) {
	step := func(c *durable.Ctx, name string) error {
		return c.Do(name, func(ctx context.Context) error {
			l.did(ctx, c.RunID(), name)
			return nil
		})
	}
	kid = durable.Define("kid", func(c *durable.Ctx, in int) (int, error) { return in, step(c, "work") })
	parent = durable.Define("all", func(c *durable.Ctx, in int) (int, error) {
		for i := range 8 {
			if err := step(c, fmt.Sprint("before ", i)); err != nil {
				return 0, err
			}
		}
		if err := txDo(c, db, "tx"); err != nil {
			return 0, err
		}
		if err := c.Sleep("sleep", 10*time.Millisecond); err != nil {
			return 0, err
		}
		if _, err := c.Child("kid", kid, in); err != nil {
			return 0, err
		}
		if _, err := c.Receive[int]("go"); err != nil {
			return 0, err
		}
		return in, step(c, "after")
	})
	return parent, kid
}

// insist calls again as long as a privilege is missing, as a caller does who knows that it will be granted.
func insist(call func() error) (err error) {
	within(patience, func() bool {
		err = call()
		return !errors.Is(err, durable.ErrPermission)
	})
	return err
}

// Row 40: for two seconds the database rejects statements. No run fails for it, callers of
// Start and Signal wait, or are told that a privilege is missing, and no function whose result was in memory is called again.
func TestRow40_RejectedForSeconds(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		for _, r := range rejections {
			if kind == "sqlite" && r.begin3 == "" {
				continue
			}
			t.Run(kind+"/"+strings.ReplaceAll(r.name, ",", ""), func(t *testing.T) {
				t.Parallel()
				rejectedForSeconds(t, owned(t, kind), r)
			})
		}
	}
}

func rejectedForSeconds(t *testing.T, db database, r rejection) {
	runs, outage := testsize.Of(20, 8), testsize.Of(2*time.Second, 700*time.Millisecond)
	l := newLedger(t)
	parent, kid := all(l, db)
	e := engineOn(t, db.openIn(t), durable.Config{Lease: time.Minute}, parent, kid)
	stop := runEngine(t, e)
	defer stop()
	handles := make([]*durable.Run[int], runs)
	errs := make(chan error, 2*runs)
	begin := func(i int) {
		err := insist(func() (err error) {
			handles[i], err = parent.Start(bounded(t), e, i, durable.ID(fmt.Sprint("r", i)))
			return err
		})
		if err != nil {
			errs <- fmt.Errorf("start %d: %w", i, err)
		}
	}
	send := func(i int) {
		err := insist(func() error { return e.Signal(bounded(t), fmt.Sprint("r", i), "go", i) })
		if err != nil {
			errs <- fmt.Errorf("signal %d: %w", i, err)
		}
	}
	var done []chan struct{}
	apart := func(f func(int), i int) {
		ended := make(chan struct{})
		done = append(done, ended)
		go func() {
			defer close(ended)
			f(i)
		}()
	}
	for i := range runs / 2 {
		apart(begin, i)
	}
	for _, d := range done {
		<-d
	}
	for i := range runs / 2 { // what claims need may be rejected too: then nobody would have anything to write
		await(t, "the first runs to begin", func() bool { return info(t, e, fmt.Sprint("r", i)).Status != durable.StatusPending })
	}
	r.turn(t, db, true)
	began := time.Now()
	for i := runs / 2; i < runs; i++ {
		apart(begin, i)
	}
	for i := range runs / 2 {
		apart(send, i)
	}
	retrying := int64(0)
	await(t, "the end of the outage", func() bool {
		stats := e.Stats()
		retrying = max(retrying, stats.RetryingWrites)
		met := retrying+stats.FailedFlushes+stats.FlushRetries > 0 // the first event comes late on a busy machine
		return time.Since(began) > outage && (met || time.Since(began) > 10*outage)
	})
	r.turn(t, db, false)
	for _, d := range done {
		<-d
	}
	done = nil
	for i := runs / 2; i < runs; i++ {
		apart(send, i)
	}
	for _, d := range done {
		<-d
	}
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	for i, run := range handles {
		if run == nil {
			continue
		}
		if v, err := run.Result(bounded(t)); err != nil || v != i {
			t.Errorf("run %d: %d, %v", i, v, err)
		}
	}
	took := time.Since(began)
	again := 0
	for what, n := range l.counts(t) {
		if n > 1 {
			t.Errorf("%s was executed %d times", what, n)
			again++
		}
	}
	s := e.Stats()
	if retrying+s.FailedFlushes+s.FlushRetries == 0 {
		t.Error("nothing was rejected: the fault did not occur")
	}
	t.Logf("fault=%q runs=%d failed=0 executed_again=%d rejected_flushes=%d replays=%d alone=%d took=%v",
		r.name, runs, again, s.FailedFlushes, s.FlushRetries, s.SoloWrites, took.Round(time.Millisecond))
}
