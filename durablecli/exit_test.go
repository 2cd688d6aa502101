package durablecli_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed8ec063be/durable/durablecli"
	"github.com/seed8ec063be/durable/internal/pgtest"
)

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	p := onFile(t)
	for _, c := range []struct {
		says string
		args []string
	}{
		{"unknown command", []string{"bogus"}},
		{"unknown flag", []string{"list", "--bogus"}},
		{"give the ID", []string{"get"}},
		{"give the ID", []string{"history", "a", "b"}},
		{"the output format", []string{"list", "-o", "xml"}},
		{"the status", []string{"list", "--status", "done"}},
		{"is incomplete", []string{"list", "--tag", "=x"}},
		{"the time", []string{"list", "--created-after", "soon"}},
		{"duration", []string{"list", "--older-than", "x"}},
		{"--limit", []string{"list", "--limit", "-1"}},
		{"invalid", []string{"list", "--cursor", "x"}},
		{"no Queue", []string{"list", "--key", "acme"}},
		{"needs a terminal", []string{"list", "--watch"}},
		{"needs a terminal", []string{"top"}},
		{"no IDs", []string{"top", "-o", "id"}},
		{"event type", []string{"events", "--type", "born"}},
		{"no JSON array", []string{"events", "-f", "-o", "json"}},
		{"leave one of them out", []string{"counts", "a", "--status", "live"}},
		{"both name a database", []string{"list", "--url", "postgres://h/db"}},
	} {
		p.fails(t, durablecli.ExitUsage, []string{c.says}, c.args...)
	}
	if got := command(t, "list"); got.code != durablecli.ExitUsage || !strings.Contains(got.err, "DATABASE_URL") {
		t.Errorf("without a database: %d %s", got.code, got.err)
	}
}

func TestNotFound(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		for _, args := range [][]string{{"get", "missing"}, {"history", "missing"}, {"tree", "missing"}, {"counts", "missing"}, {"generations", "missing"}, {"get", "missing", "--wait"}} {
			p.fails(t, durablecli.ExitNotFound, []string{`"missing"`}, args...)
		}
	})
}

func TestDatabaseCannotBeUsed(t *testing.T) {
	t.Parallel()
	missing := t.TempDir() + "/missing.db"
	text := t.TempDir() + "/text.db"
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"does not exist", []string{"--file", missing}},
		{"text.db", []string{"--file", text}},
		{"", []string{"--url", "postgres://127.0.0.1:1/none?connect_timeout=1"}},
		{"migrat", []string{"--url", pgtest.ServerURL(t), "--schema", pgtest.Schema(t)}},
	} {
		got := command(t, append([]string{"list"}, c.args...)...)
		if got.code != durablecli.ExitDatabase || !strings.Contains(got.err, c.says) {
			t.Errorf("%q exits with %d: %s", c.args, got.code, got.err)
		}
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a command that looks created the file")
	}
}

func TestAPasswordInTheURLIsWarnedOf(t *testing.T) {
	t.Parallel()
	for url, warned := range map[string]bool{
		"postgres://ann:secret@127.0.0.1:1/none":          true,
		"host=127.0.0.1 port=1 password=secret":           true,
		"postgres://ann@127.0.0.1:1/none?password=secret": true,
		"postgres://ann@127.0.0.1:1/none":                 false,
		"host=127.0.0.1 port=1 user=ann":                  false,
	} {
		got := command(t, "list", "--url", url)
		if strings.Contains(got.err, "warning: the password") != warned {
			t.Errorf("%s: %s", url, got.err)
		}
		if strings.Contains(got.err, "secret") {
			t.Errorf("%s: the message has the password: %s", url, got.err)
		}
	}
}

// program returns the program durable as a process of its own.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(within(t), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// firstLine returns the first line of an output.
func firstLine(t *testing.T, r io.Reader) string {
	t.Helper()
	scanner := bufio.NewScanner(r)
	if !scanner.Scan() {
		t.Fatal("the output ends before its first line", scanner.Err())
	}
	return scanner.Text()
}

// A command that follows ends with 130 on SIGINT, after it has written what it saw.
func TestInterrupted(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		cmd := program(t, append([]string{"events", "-f", "-o", "jsonl"}, p.flags...)...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		errs, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := firstLine(t, errs)
		e := p.client(t)
		start(t, e, order, "order-1", "book")
		if _, err := e.Terminate(within(t), "order-1"); err != nil {
			t.Fatal(err)
		}
		line := firstLine(t, out)
		if !strings.Contains(line, `"type":"cancelled"`) {
			t.Errorf("the first line is %s", line)
		}
		if err := cmd.Process.Signal(unix.SIGINT); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != durablecli.ExitInterrupted {
			t.Errorf("exit code %d: %s", code, said)
		}
	})
}

// The program has the exit codes of its commands, and takes the database from the environment.
func TestProgram(t *testing.T) {
	t.Parallel()
	p := onFile(t)
	start(t, p.client(t), order, "order-1", "book")
	for _, c := range []struct {
		code int
		args []string
	}{{0, []string{"get", "order-1"}}, {2, []string{"bogus"}}, {3, []string{"get", "missing"}}} {
		cmd := program(t, c.args...)
		cmd.Env = append(cmd.Env, "DATABASE_URL=sqlite:"+p.flags[1])
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%q exits with %d, not %d: %s", c.args, code, c.code, out)
		}
	}
}

// list --watch and top draw the screen again and again, until they are interrupted.
func TestScreens(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, _ := p.engine(t)
		for name, args := range map[string][]string{"list": {"list", "--watch", "--interval", "10ms"}, "top": {"top", "--interval", "10ms"}} {
			s := newScreen(t, 100, 30)
			cmd := program(t, append(args, p.flags...)...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = s.tty, s.tty, s.tty
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, "the first screen", func() bool { return strings.Contains(s.String(), "as of ") })
			await(t, start(t, e, order, "seen-by-"+name, "declined"))
			until(t, "a screen with the run", func() bool { return strings.Contains(s.String(), "seen-by-"+name) })
			if err := cmd.Process.Signal(unix.SIGINT); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != durablecli.ExitInterrupted {
				t.Errorf("%s exits with %d: %s", name, code, s)
			}
		}
	})
}

func TestWithoutADatabase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		says string
		args []string
	}{
		{"Look:", nil},
		{"--created-after", []string{"list", "--help"}},
		{"Schema", []string{"version"}},
		{`"schema_sqlite":`, []string{"version", "-o", "json"}},
		{"bash completion", []string{"completion", "bash"}},
		{"#compdef", []string{"completion", "zsh"}},
		{"fish completion", []string{"completion", "fish"}},
		{"Register-ArgumentCompleter", []string{"completion", "powershell"}},
	} {
		if got := command(t, c.args...); got.code != 0 || !strings.Contains(got.out, c.says) {
			t.Errorf("durable %q exits with %d and does not say %q: %s%s", c.args, got.code, c.says, got.out, got.err)
		}
	}
	if got := command(t, "completion", "tcsh"); got.code != durablecli.ExitUsage {
		t.Errorf("completion of an unknown shell exits with %d: %s", got.code, got.err)
	}
}
