package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/schema"
)

// rights has the rights of each role, by table: Select, Insert, Update, Delete. A new table has to be
// granted to the roles that need it, here and in package schema.
var rights = map[schema.Role]map[string]string{
	schema.Worker: {
		"migration": "S", "secret": "S", "run": "SIUD", "step": "SIUD", "signal": "SIUD", "worker": "SIUD", "tag": "SIUD", "event": "SID",
		"fold": "SIUD", "schedule": "SIUD", "fire": "SIUD", "fired": "SIUD",
		"step_limit": "SIUD", "limit_key": "SIUD", "permit": "SIUD",
		"queue": "SIUD", "queue_key": "SIUD", "place": "SIUD", "generation": "SID", "divergence": "SIUD", "repair_pause": "SIUD", "version": "SIUD",
	},
	schema.Operator: {
		"migration": "S", "secret": "S", "worker": "S", "run": "S", "step": "S", "signal": "SI", "event": "SI", "tag": "SIUD",
		"fold": "S", "folds": "S", "version": "S", "divergence": "S", "repair_pause": "S", "generation": "S", "generations": "S", "nodes": "S", "edges": "S", "shapes": "S", "schedule": "SIUD", "fire": "SIUD", "fired": "SIUD",
		"step_limit": "SIUD", "limit_key": "S", "permit": "S",
		"queue": "SIUD", "queue_key": "SIU", "place": "SID",
		"runs": "S", "steps": "S", "signals": "S", "events": "S", "schedules": "S", "fires": "S", "permits": "S", "queues": "S", "places": "S",
	},
	schema.Starter: {"migration": "S", "run": "S", "tag": "SI", "fold": "SIU", "queue": "S", "place": "SI"},
	schema.Reader: {
		"migration": "S", "run": "S", "step": "S", "signal": "S", "tag": "S", "event": "S", "worker": "S",
		"fold": "S", "folds": "S", "version": "S", "divergence": "S", "repair_pause": "S", "generation": "S", "generations": "S", "nodes": "S", "edges": "S", "shapes": "S", "schedule": "S", "fire": "S", "fired": "S", "step_limit": "S", "limit_key": "S", "permit": "S",
		"queue": "S", "queue_key": "S", "place": "S",
		"runs": "S", "steps": "S", "signals": "S", "events": "S", "schedules": "S", "fires": "S", "permits": "S", "queues": "S", "places": "S",
	},
}

// granted creates a role with the rights of role, and returns a URL that connects as it.
func granted(t *testing.T, url, in string, role schema.Role) (name, as string) {
	t.Helper()
	conn := connectTo(t, url)
	name = fmt.Sprintf("durable_%s_%s", role, strings.ToLower(strings.TrimPrefix(conn.Config().Database, "pgtest_")))
	execAll(t, conn, "CREATE ROLE "+name)
	t.Cleanup(func() {
		for _, sql := range []string{"DROP OWNED BY " + name + " CASCADE", "DROP ROLE " + name} {
			if _, err := conn.Exec(context.Background(), sql); err != nil {
				t.Error(err)
			}
		}
	})
	grant(t, conn, role, in, name)
	return name, with(url, "options=-c%20role%3D"+name)
}

func grant(t *testing.T, conn *pgx.Conn, role schema.Role, in, name string) {
	t.Helper()
	text, err := schema.Grants(role, in, name)
	if err != nil {
		t.Fatal(err)
	}
	execAll(t, conn, text)
}

func connectTo(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func execAll(t *testing.T, conn *pgx.Conn, text string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(text, err)
	}
}

// TestRolesHaveTheirRightsOnly reads what each role may do with each table and view.
func TestRolesHaveTheirRightsOnly(t *testing.T) {
	url := pgtest.URL(t)
	openAt(t, url, Schema("flows"))
	conn := connectTo(t, url)
	for role, want := range rights {
		name, _ := granted(t, url, "flows", role)
		rows, err := conn.Query(t.Context(), `
			SELECT c.relname::text, string_agg(left(p, 1), '' ORDER BY array_position('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[], p))
			FROM pg_class AS c, unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS p
			WHERE c.relnamespace = 'flows'::regnamespace AND c.relkind IN ('r', 'v', 'S', 'm', 'p') AND has_table_privilege($1::text, c.oid, p)
			GROUP BY 1`, name)
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]string)
		var table, may string
		if _, err := pgx.ForEachRow(rows, []any{&table, &may}, func() error { got[table] = may; return nil }); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, want) {
			t.Errorf("a %s may %v, want %v", role, got, want)
		}
		var creates bool
		if err := conn.QueryRow(t.Context(), "SELECT has_schema_privilege($1::text, 'flows', 'CREATE')", name).Scan(&creates); err != nil || creates {
			t.Errorf("a %s may create in the schema: %v, %v", role, creates, err)
		}
	}
}

// TestRolesDoTheirWork: each role can do its own work, and is refused everything else.
func TestRolesDoTheirWork(t *testing.T) {
	url := pgtest.URL(t)
	owner, asOwner := granted(t, url, "flows", schema.Owner) // this role has no right to create in the database
	openAt(t, asOwner, Schema("flows"))
	tokens := make(chan string, 4)
	w := durable.Define("w", func(c *durable.Ctx, in string) (string, error) {
		wait := c.Callback[string]("approval")
		if err := c.Do("mail", func(context.Context) error { tokens <- wait.Token(); return nil }); err != nil {
			return "", err
		}
		return wait.Wait(durable.Within(time.Hour))
	})
	as := func(role schema.Role, workflows ...durable.Definition) *durable.Engine {
		t.Helper()
		_, url := granted(t, url, "flows", role)
		e, err := durable.New(openAt(t, url, Schema("flows"), OwnedBy(owner)), durable.Config{Workflows: workflows})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	worker, operator, starter, reader := as(schema.Worker, w), as(schema.Operator), as(schema.Starter), as(schema.Reader)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	run, err := w.Start(t.Context(), starter, "in", durable.ID("a"), durable.Tag("shop.kind", "book"))
	if err != nil {
		t.Fatal(err)
	}
	token := <-tokens
	other, err := w.Start(t.Context(), starter, "in", durable.ID("b"))
	if err != nil {
		t.Fatal(err)
	}
	<-tokens
	does := func(role schema.Role, what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("a %s cannot %s: %v", role, what, err)
		}
	}
	ann := durable.Actor("ann") // an event of each act records her
	_, err = operator.Pause(t.Context(), "a", ann)
	does(schema.Operator, "pause", err)
	_, err = operator.Resume(t.Context(), "a", durable.FreezeTimers(), ann)
	does(schema.Operator, "resume", err)
	does(schema.Operator, "complete a token", operator.Complete(t.Context(), token, "yes", ann))
	does(schema.Operator, "signal", operator.Signal(t.Context(), "b", "go", 1, ann))
	does(schema.Operator, "tag", operator.SetTags(t.Context(), "a", map[string]string{"shop.kind": "", "shop.size": "big"}, ann))
	does(schema.Operator, "set a timeout", operator.SetTimeout(t.Context(), "b", time.Hour, ann))
	_, err = operator.Cancel(t.Context(), "b")
	does(schema.Operator, "cancel", err)
	third, err := w.Start(t.Context(), starter, "in", durable.ID("c"))
	if err != nil {
		t.Fatal(err)
	}
	plan := durable.Schedule{Name: "nightly", Cron: "@daily", Workflow: "w", Input: "in"}
	does(schema.Operator, "set a schedule", operator.SetSchedule(t.Context(), plan))
	does(schema.Operator, "pause a schedule", operator.PauseSchedule(t.Context(), "nightly"))
	_, err = worker.TriggerSchedule(t.Context(), "nightly", ann)
	does(schema.Worker, "trigger a schedule", err)
	schedules, err := reader.Schedules(t.Context())
	does(schema.Reader, "read schedules", err)
	if len(schedules) != 1 || len(schedules[0].LastFires) != 1 {
		t.Errorf("a reader sees the schedules %+v", schedules)
	}
	does(schema.Operator, "delete a schedule", operator.DeleteSchedule(t.Context(), "nightly", ann))
	replaced, err := w.Start(t.Context(), starter, "in", durable.Singleton("k"), durable.Delay(time.Hour))
	does(schema.Starter, "start a singleton", err)
	_, err = w.Start(t.Context(), starter, "in", durable.Singleton("k", durable.SingletonReplace), durable.Delay(time.Hour))
	does(schema.Starter, "replace a run", err)
	if _, err := replaced.Result(t.Context()); !errors.Is(err, durable.ErrCancelled) {
		t.Errorf("a run that a starter replaces: %v", err)
	}
	for range 2 {
		_, err = w.Start(t.Context(), starter, "in", durable.Debounce("k", time.Hour, time.Hour))
		does(schema.Starter, "debounce", err)
	}
	does(schema.Operator, "delete a queue", errors.Join(operator.SetQueue(t.Context(), "gone", durable.QueueSettings{MaxExecuting: 1}), operator.DeleteQueue(t.Context(), "gone", ann)))
	does(schema.Operator, "delete a limit", errors.Join(operator.SetLimit(t.Context(), "gone", durable.LimitBounds{Concurrent: 1}), operator.DeleteLimit(t.Context(), "gone", ann)))
	does(schema.Operator, "set a queue", operator.SetQueue(t.Context(), "mail", durable.QueueSettings{MaxInProgress: 1}))
	waiting, err := w.Start(t.Context(), starter, "in", durable.InQueue("mail"), durable.GroupKey("k"), durable.Delay(time.Hour))
	does(schema.Starter, "start in a queue", err)
	does(schema.Operator, "set a priority", operator.SetPriority(t.Context(), waiting.ID(), 1))
	does(schema.Operator, "move a run", operator.MoveToQueue(t.Context(), waiting.ID(), "elsewhere"))
	does(schema.Operator, "move a run back", operator.MoveToQueue(t.Context(), waiting.ID(), "mail"))
	_, err = operator.Terminate(t.Context(), third.ID())
	does(schema.Operator, "terminate", err)
	if got, err := run.Result(t.Context()); got != "yes" || err != nil {
		t.Errorf("the starter reads %q, %v", got, err)
	}
	if _, err := other.Result(t.Context()); !errors.Is(err, durable.ErrCancelled) {
		t.Errorf("the starter reads %v of a run that was cancelled", err)
	}
	for role, e := range map[schema.Role]*durable.Engine{schema.Operator: operator, schema.Reader: reader} {
		_, err = e.List(t.Context(), durable.Filter{Tag: "shop.size"}, durable.Page{})
		does(role, "list", err)
		_, err = e.History(t.Context(), "a")
		does(role, "read a history", err)
		_, err = e.Get(t.Context(), "a")
		does(role, "look at a run", err)
		workers, err := e.Workers(t.Context())
		does(role, "list workers", err)
		if role == schema.Operator && len(workers) > 0 {
			does(role, "make a worker quiet", operator.QuietWorker(t.Context(), workers[0].ID))
			does(role, "resume a worker", operator.ResumeWorker(t.Context(), workers[0].ID))
		}
		events, err := e.Events(t.Context(), durable.Page{})
		does(role, "read events", err)
		if len(events) == 0 {
			t.Errorf("a %s reads no events", role)
		}
	}
	refused := func(role schema.Role, what string, err error) {
		t.Helper()
		if !hasSQLState(err, "42501") {
			t.Errorf("a %s may %s: %v", role, what, err)
		}
	}
	_, err = w.Start(t.Context(), reader, "in")
	refused(schema.Reader, "start", err)
	_, err = w.Start(t.Context(), operator, "in")
	refused(schema.Operator, "start", err)
	_, err = w.Start(t.Context(), operator, "in", durable.Singleton("k"), durable.Delay(time.Hour))
	refused(schema.Operator, "start a singleton", err)
	_, err = operator.Delete(t.Context(), third.ID())
	refused(schema.Operator, "delete", err)
	if !errors.Is(err, durable.ErrPermission) {
		t.Errorf("an operator that deletes: %v", err)
	}
	_, err = worker.Delete(t.Context(), third.ID())
	does(schema.Worker, "delete", err)
	for role, e := range map[schema.Role]*durable.Engine{schema.Reader: reader, schema.Starter: starter} {
		_, err = e.Cancel(t.Context(), "a")
		refused(role, "cancel", err)
		refused(role, "signal", e.Signal(t.Context(), "a", "go", 1))
		refused(role, "complete a token", e.Complete(t.Context(), token, "yes"))
		refused(role, "set a schedule", e.SetSchedule(t.Context(), plan))
		refused(role, "tag", e.SetTags(t.Context(), "a", map[string]string{"shop.kind": "x"}))
	}
	_, err = starter.History(t.Context(), "a")
	refused(schema.Starter, "read a history", err)
}

func TestGrantsAreForNamesAsTheyAre(t *testing.T) {
	text, err := schema.Grants(schema.Reader, `a"b`, `c"; DROP SCHEMA durable; --`)
	if err != nil || strings.Contains(strings.ReplaceAll(text, `""`, ""), `c";`) || !strings.Contains(text, `"a""b".run`) {
		t.Errorf("%s, %v", text, err)
	}
	for _, c := range [][2]string{{"", "r"}, {"s", ""}, {"s", "\x00"}} {
		if _, err := schema.Grants(schema.Reader, c[0], c[1]); err == nil {
			t.Errorf("the names %q were accepted", c)
		}
	}
	if _, err := schema.Grants("boss", "s", "r"); err == nil {
		t.Error("an unknown role was accepted")
	}
}

// suiteWorker is the name of a worker's role in the database of the suite.
const suiteWorker = "durable_suite_worker"

var makeSuiteWorker sync.Once

// workersMay are the schemas in which the role suiteWorker has its rights.
var workersMay sync.Map

// openAsWorker opens a store with the rights of a worker, which the caller closes. It migrates a schema of its own unless
// that exists.
func openAsWorker(t *testing.T, mode, in string) *database {
	t.Helper()
	url := with(pgtest.ServerURL(t), "default_query_exec_mode="+mode)
	if _, ready := workersMay.Load(in); !ready {
		migrateForWorkers(t, url, in)
		workersMay.Store(in, true)
	}
	s, err := openDatabase(t.Context(), with(url, "options=-c%20role%3D"+suiteWorker), Schema(in), WithoutMigrations())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// migrateForWorkers creates a schema in which the role suiteWorker has its rights.
func migrateForWorkers(t *testing.T, url, in string) {
	t.Helper()
	migrated, err := openDatabase(t.Context(), url, Schema(in))
	if err != nil {
		t.Fatal(err)
	}
	defer migrated.Close()
	conn, err := migrated.userPool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	makeSuiteWorker.Do(func() {
		_, err := conn.Exec(t.Context(), "CREATE ROLE "+suiteWorker)
		if err != nil && !hasSQLState(err, "42710", "23505") { // created by another test run on this server
			t.Error(err)
		}
	})
	grant(t, conn.Conn(), schema.Worker, in, suiteWorker)
}
