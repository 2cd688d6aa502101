package durablecli_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
	"github.com/seed8ec063be/durable/internal/pgtest"
)

// The doctor finds nothing where nothing is wrong, and exits with 1 where a problem is.
func TestDoctor(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, _ := p.engine(t)
		for workers := []durable.WorkerInfo(nil); len(workers) == 0 && t.Context().Err() == nil; { // until its first heartbeat is written
			var err error
			if workers, err = e.Workers(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got := p.try(t, "doctor", "-o", "jsonl")
		for line := range strings.Lines(got.out) {
			// The servers of the tests do without fsync, and other tests use them too.
			if !strings.Contains(line, `"level":"ok"`) && !strings.Contains(line, `"check":"fsync"`) && !strings.Contains(line, `"check":"full_page_writes"`) && !strings.Contains(line, `"check":"synchronous_commit"`) && !strings.Contains(line, `"check":"autovacuum"`) && !strings.Contains(line, `"check":"connections"`) && !strings.Contains(line, `"check":"statements"`) {
				t.Errorf("the doctor finds %s", line)
			}
		}
		wanted := []string{"schema", "clock", "workers", "runs", "journal", "file", "statements"}
		if p.flags[0] == "--url" {
			wanted = []string{"schema", "clock", "server", "fsync", "full_page_writes", "synchronous_commit", "connections", "LISTEN", "transactions", "statements", "bloat", "pools", "workers", "runs"}
		}
		for _, check := range wanted {
			if !strings.Contains(got.out, `"check":"`+check+`"`) {
				t.Errorf("the doctor does not check %s: %s%s", check, got.out, got.err)
			}
		}
	})
}

func TestDoctorFindsProblems(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e := p.client(t)
		start(t, e, order, "a-1", "book")
		if got := p.try(t, "doctor"); got.code != durablecli.ExitError || !strings.Contains(got.out, "no worker lives, and runs wait") {
			t.Errorf("without a worker: %d %s%s", got.code, got.out, got.err)
		}
		s := newScreen(t, 60, 24)
		s.run(t, append([]string{"doctor", "--no-color"}, p.flags...)...)
		for line := range strings.Lines(s.finish()) {
			if displayWidth(line) > 60 {
				t.Errorf("a line is longer than the terminal's: %s", line)
			}
		}
		if got := commandOn(t, e, "", "doctor"); got.code != durablecli.ExitError || !strings.Contains(got.out, "no worker lives") || !strings.Contains(got.err, "not checked") {
			t.Errorf("embedded: %d %s%s", got.code, got.out, got.err)
		}
	})
	if got := command(t, "doctor", "--url", "postgres://127.0.0.1:1/none?connect_timeout=1"); got.code != durablecli.ExitDatabase {
		t.Errorf("without a server: %d %s", got.code, got.err)
	}
	if got := command(t, "doctor", "--file", t.TempDir()+"/missing.db"); got.code != durablecli.ExitDatabase {
		t.Errorf("without a file: %d %s", got.code, got.err)
	}
	if got := command(t, "doctor", "--url", "postgres://u:secret@%"); strings.Contains(got.err, "secret") || got.code != durablecli.ExitDatabase {
		t.Errorf("a bad connection string: %d %s", got.code, got.err)
	}
}

// The migrations can be applied by the command, and by a DBA with the SQL that it writes.
func TestMigrate(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for _, byHand := range []bool{false, true} {
				flags := []string{"--url", pgtest.ServerURL(t), "--schema", pgtest.Schema(t)}
				execute := func(text string) { executePostgres(t, pgtest.ServerURL(t), text) }
				if kind == "sqlite" {
					file := filepath.Join(t.TempDir(), "new file %41.db")
					flags = []string{"--file", file}
					execute = func(text string) { executeSQLite(t, file, text) }
					if byHand {
						execute("VACUUM") // creates the file
					}
				}
				on := func(code int, args ...string) outcome {
					t.Helper()
					got := command(t, append(args, flags...)...)
					if got.code != code {
						t.Errorf("durable %q exits with %d, not %d: %s%s", args, got.code, code, got.out, got.err)
					}
					return got
				}
				on(durablecli.ExitDatabase, "list")
				if byHand {
					if got := on(0, "migrate", "status"); strings.Contains(got.out, "applied") || !strings.Contains(got.err, "pending") {
						t.Errorf("before: %s%s", got.out, got.err)
					}
					if got := on(durablecli.ExitError, "doctor"); !strings.Contains(got.out, "no tables of durable") {
						t.Errorf("before: %s%s", got.out, got.err)
					}
					execute(on(0, "migrate", "sql").out)
				} else {
					on(0, "migrate", "up")
				}
				if got := on(0, "migrate", "status", "-o", "jsonl"); strings.Contains(got.out, "pending") || !strings.Contains(got.out, "applied") {
					t.Errorf("after: %s%s", got.out, got.err)
				}
				if got := on(0, "migrate", "sql"); got.out != "" {
					t.Errorf("after: %s", got.out)
				}
				on(0, "migrate", "up")
				on(0, "list")
				table := "durable_migration"
				if kind == "postgres" {
					table = pgx.Identifier{flags[3], "migration"}.Sanitize()
				}
				execute("DELETE FROM " + table + " WHERE version = (SELECT max(version) FROM " + table + ")")
				if got := on(durablecli.ExitError, "doctor"); !strings.Contains(got.out, "durable migrate up") {
					t.Errorf("an old schema: %s%s", got.out, got.err)
				}
				on(durablecli.ExitDatabase, "list")
				execute("INSERT INTO " + table + " (version, name, applied_at) SELECT 1000, name, applied_at FROM " + table + " WHERE version = 1")
				if got := on(durablecli.ExitError, "doctor"); !strings.Contains(got.out, "update this program") {
					t.Errorf("a new schema: %s%s", got.out, got.err)
				}
				on(durablecli.ExitDatabase, "migrate", "status")
			}
		})
	}
	for _, all := range []string{"sqlite", "postgres"} {
		if got := command(t, "migrate", "sql", "--all", all); got.code != 0 || !strings.Contains(got.out, "CREATE TABLE") {
			t.Errorf("all migrations of %s: %d %s", all, got.code, got.err)
		}
	}
	if got := command(t, "migrate", "sql", "--all", "oracle"); got.code != durablecli.ExitUsage {
		t.Errorf("an unknown database exits with %d", got.code)
	}
	if got := command(t, "migrate", "grants", "reader", "ann"); got.code != 0 || !strings.Contains(got.out, "GRANT SELECT") || !strings.Contains(got.out, "ann") {
		t.Errorf("grants: %d %s%s", got.code, got.out, got.err)
	}
	if got := command(t, "migrate", "grants", "king", "ann"); got.code != durablecli.ExitUsage {
		t.Errorf("an unknown role exits with %d", got.code)
	}
}

func executePostgres(t *testing.T, url, text string) {
	t.Helper()
	conn, err := pgx.Connect(within(t), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(within(t))
	if _, err := conn.PgConn().Exec(within(t), text).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

func executeSQLite(t *testing.T, file, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+strings.ReplaceAll(strings.ReplaceAll(file, "%", "%25"), " ", "%20")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // a transaction may span several statements
	if _, err := db.ExecContext(within(t), text); err != nil {
		t.Fatal(err)
	}
}

func TestExport(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e := p.client(t)
		start(t, e, order, "a/1", "book")
		start(t, e, order, "a-2", "\u202e")
		got := runOn(t, e, 0, "", "export", "a-2").out
		if !strings.Contains(got, `"format"`) || strings.Contains(got, "\u202e") {
			t.Errorf("the export is %s", got)
		}
		dir := t.TempDir()
		runOn(t, e, 0, "a/1\na-2\n", "export", "-", "--dir", dir)
		if document, err := os.ReadFile(filepath.Join(dir, "a%2F1.json")); err != nil || !strings.Contains(string(document), `"book"`) {
			t.Errorf("the file has %s, %v", document, err)
		}
		runOn(t, e, durablecli.ExitUsage, "", "export", "a/1", "a-2")
		runOn(t, e, durablecli.ExitNotFound, "", "export", "missing")
	})
}

// An export into a folder writes every run that exists, whatever the ID, and creates the folder.
func TestExportIntoAFolderWritesEveryRun(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e := p.client(t)
		long := strings.Repeat("ü", 250) // a character of an escaped name takes six bytes
		run := start(t, e, order, long, "long")
		start(t, e, order, "a-1", "book")
		dir := filepath.Join(t.TempDir(), "archive", "today")
		if got := runOn(t, e, durablecli.ExitNotFound, "missing\n"+long+"\na-1\n", "export", "-", "--dir", dir); !strings.Contains(got.err, `no run "missing"`) {
			t.Errorf("the missing run is not named: %s", got.err)
		}
		for name, input := range map[string]string{run.RunID() + ".json": `"long"`, "a-1.json": `"book"`} {
			if document, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(document), input) {
				t.Errorf("the file %s has %s, %v", name, document, err)
			}
		}
	})
}

func TestRepairOfOneStep(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, stop := p.engine(t)
		await(t, start(t, e, order, "a-1", "declined"))
		await(t, start(t, e, order, "a-2", "book"))
		stop()
		golden(t, "repair-step", steady(runOn(t, e, 0, "", "skip", "a-1", "charge", `"paid by hand"`, "--dry-run").out+
			runOn(t, e, 0, "", "override", "a-2", "charge", `"paid twice"`, "--reason", "refund").out+
			runOn(t, e, 0, "", "rerun", "a-2", "charge", "-o", "jsonl").out))
		if s := status(t, e, "a-1"); s != durable.StatusFailed {
			t.Errorf("after a dry run the run is %s", s)
		}
		runOn(t, e, 0, "", "skip", "a-1", "charge", `"paid by hand"`)
		_, _ = p.engine(t)
		if got := runOn(t, e, 0, "", "get", "a-1", "--wait").out; !strings.Contains(got, "paid by hand") {
			t.Errorf("the run is %s", got)
		}
		runOn(t, e, durablecli.ExitNotFound, "", "rerun", "a-1", "missing")
		runOn(t, e, durablecli.ExitNotFound, "", "rerun", "missing", "charge")
		runOn(t, e, durablecli.ExitUsage, "", "override", "a-2", "charge", "{}")
		runOn(t, e, durablecli.ExitUsage, "", "override", "a-2", "charge")
	})
}
