package durablecli_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// asProgram makes the test binary behave as the program durable, so that tests of signals and pipes need not build one.
const asProgram = "DURABLE_CLI_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(durablecli.Execute(context.Background(), durablecli.Command(nil)))
	}
	flag.Parse()
	os.Unsetenv("DATABASE_URL")
	os.Unsetenv("NO_COLOR")
	os.Exit(pgtest.InMemory(func() int { return pgtest.Main(m) }))
}

var update = flag.Bool("update", false, "write the golden files anew")

// place is a database with the flags that name it.
type place struct {
	store durable.Store
	flags []string
}

// onStores runs a test as subtests, each on a fresh database of one kind.
func onStores(t *testing.T, test func(t *testing.T, p *place)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, onFile(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		name := pgtest.LendSchema(t, "migration", "secret")
		s, err := postgres.Open(within(t), pgtest.ServerURL(t), postgres.Schema(name))
		if err != nil {
			t.Fatal(err)
		}
		closeWith(t, s)
		test(t, &place{s, []string{"--url", pgtest.ServerURL(t), "--schema", name}})
	})
}

// onFile returns a new SQLite database.
func onFile(t *testing.T) *place {
	t.Helper()
	path := filepath.Join(t.TempDir(), "durable.db")
	s, err := sqlite.Open(path, sqlite.Synchronous(sqlite.Normal))
	if err != nil {
		t.Fatal(err)
	}
	closeWith(t, s)
	return &place{s, []string{"--file", path}}
}

func closeWith(t *testing.T, s durable.Store) {
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// within returns a context that ends after 20 s or with the test, so that a test does not hang.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// outcome is what a command wrote, and its exit code.
type outcome struct {
	out, err string
	code     int
}

// command executes a command in a pipe, on no database.
func command(t *testing.T, args ...string) outcome {
	t.Helper()
	return commandOn(t, nil, "", args...)
}

// commandOn executes a command in a pipe on the engine; nil: on the database that the arguments name.
func commandOn(t *testing.T, e *durable.Engine, stdin string, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := durablecli.Command(e)
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetIn(strings.NewReader(stdin))
	err := cmd.ExecuteContext(within(t))
	if err != nil {
		errs.WriteString("Error: " + err.Error() + "\n")
	}
	return outcome{out.String(), errs.String(), durablecli.ExitCode(err)}
}

// run executes a command on the database in a pipe, and fails the test if its exit code is not 0.
func (p *place) run(t *testing.T, args ...string) outcome {
	t.Helper()
	got := p.try(t, args...)
	if got.code != 0 {
		t.Fatalf("durable %q exits with %d\n%s%s", args, got.code, got.out, got.err)
	}
	return got
}

// try executes a command on the database in a pipe.
func (p *place) try(t *testing.T, args ...string) outcome {
	t.Helper()
	return commandOn(t, nil, "", append(args, p.flags...)...)
}

// fails executes a command that must exit with the code and name each of the texts in its message.
func (p *place) fails(t *testing.T, code int, texts []string, args ...string) {
	t.Helper()
	got := p.try(t, args...)
	if got.code != code {
		t.Errorf("durable %q exits with %d, not %d\n%s%s", args, got.code, code, got.out, got.err)
	}
	for _, text := range texts {
		if !strings.Contains(got.err, text) {
			t.Errorf("durable %q does not say %q, but: %s", args, text, got.err)
		}
	}
}

// The workflows of the tests.
var (
	errDeclined = errors.New("card declined")
	order       = durable.Define("order", func(c *durable.Ctx, in string) (string, error) {
		return c.Step("charge", func(context.Context) (string, error) {
			if in == "declined" {
				return "", errDeclined
			}
			return "paid " + in, nil
		})
	})
	approval = durable.Define("approval", func(c *durable.Ctx, in string) (string, error) {
		return c.Receive[string]("approve", durable.Within(48*time.Hour))
	})
	family = durable.Define("family", func(c *durable.Ctx, in string) (string, error) {
		if _, err := c.Child("first", order, in); err != nil {
			return "", err
		}
		return c.Child("second", approval, in)
	})
	workflows = []durable.Definition{order, approval, family}
)

// engine returns an engine on the database that executes the workflows until the test ends, or until stop is called.
func (p *place) engine(t *testing.T, more ...durable.Definition) (e *durable.Engine, stop func()) {
	t.Helper()
	return p.engineWith(t, durable.Config{Workflows: append(more, workflows...), Name: "worker-1", Version: "v1"})
}

// engineWith returns an engine on the database that executes its workflows until the test ends, or until stop is called.
func (p *place) engineWith(t *testing.T, cfg durable.Config) (e *durable.Engine, stop func()) {
	t.Helper()
	e, err := durable.New(p.store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return e, stop
}

// client returns an engine on the database that executes nothing.
func (p *place) client(t *testing.T) *durable.Engine {
	t.Helper()
	e, err := durable.New(p.store, durable.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// start starts a run of order or approval.
func start(t *testing.T, e *durable.Engine, w *durable.Workflow[string, string], id, in string, opts ...durable.StartOption) *durable.Run[string] {
	t.Helper()
	run, err := w.Start(within(t), e, in, append(opts, durable.ID(id))...)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// await waits until the run has ended.
func await(t *testing.T, run *durable.Run[string]) {
	t.Helper()
	failed := new(durable.RunError)
	if _, err := run.Result(within(t)); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
}

// until calls a function until it reports true.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx := within(t)
	for !holds() {
		if ctx.Err() != nil {
			t.Fatalf("%s never happened", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

var (
	uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	ages  = regexp.MustCompile(`\b(now|(in )?[0-9.]+(µs|ms|s|m|h|d)([0-9]+(s|m|h))?( ago)?)\b`)
	gaps  = regexp.MustCompile(` {2,}`)
)

// normal returns the text without what differs from one execution to the next: UUIDs, times and the widths of columns.
func normal(text string) string {
	text = uuids.ReplaceAllString(text, "UUID")
	text = times.ReplaceAllString(text, "TIME")
	text = strings.ReplaceAll(ages.ReplaceAllString(text, "AGE"), "-AGE", "AGE")
	return gaps.ReplaceAllString(text, "  ")
}

// golden compares the outputs of commands with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	got = normal(got)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew)\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}
