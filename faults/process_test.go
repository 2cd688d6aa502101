package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// jobEnv makes the test binary a worker process; its value is a job as JSON.
const jobEnv = "DURABLE_FAULTS_JOB"

// job is what a worker process is to do.
type job struct {
	Scenario string
	DB       database
	Ledger   ledger
	ID       string        // of the run, or the prefix of several
	Workflow string        // its name, where tests share a database
	Runs     int           // how many
	N        int64         // at which call
	Point    string        // where in it
	File     string        // to wait for
	Lease    time.Duration // zero: the default
	Grace    time.Duration
	Crashes  int
}

// scenarios are what worker processes can play. The store is open; the context ends
// with SIGTERM, after which a second one kills.
var scenarios = map[string]func(ctx context.Context, j *job, s durable.Store) error{}

// play is the main function of a worker process.
func play(text string) int {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		say("error", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, func() {
		stop()
		say("terminating")
	})()
	scenario := scenarios[j.Scenario]
	if scenario == nil {
		say("error no scenario", j.Scenario)
		return 2
	}
	var s durable.Store
	if j.DB.Kind != "" {
		say("opening")
		var err error
		if s, err = j.DB.open(); err != nil {
			say("error open:", err)
			return 1
		}
		defer s.Close()
	}
	if err := scenario(ctx, &j, s); err != nil {
		say("error", err)
		return 1
	}
	say("done")
	return 0
}

// say reports one line to the parent, at once and in one write.
func say(words ...any) {
	line := strings.ReplaceAll(strings.TrimSuffix(fmt.Sprintln(words...), "\n"), "\n", " ")
	_, _ = os.Stdout.WriteString(line + "\n")
}

// die kills this process as nothing else does: no deferred call, no signal handler.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// process is a worker process under way.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	lines  chan string
	seen   []string
	stderr strings.Builder
	ended  chan struct{}
	once   sync.Once
	state  *os.ProcessState
}

// spawn starts a worker process, which does not outlive the test.
func spawn(t testing.TB, j job) *process {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(os.Args[0]), lines: make(chan string, 1024), ended: make(chan struct{})}
	// The race detector would make every exit a second long.
	p.cmd.Env = append(os.Environ(), jobEnv+"="+string(text), "GORACE=atexit_sleep_ms=0", "GOTRACEBACK=single")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		in := bufio.NewScanner(out)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			p.lines <- in.Text()
		}
		_, _ = io.Copy(io.Discard, out)
		_ = p.cmd.Wait() // its state says it
		p.state = p.cmd.ProcessState
		close(p.lines)
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		p.wait()
	})
	return p
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// expect waits for a line that begins with prefix and returns the rest of it. A line
// that reports an error fails the test, unless that is what is expected.
func (p *process) expect(prefix string) string {
	p.t.Helper()
	line, ok := p.next(prefix)
	if !ok {
		p.wait()
		p.t.Fatalf("the process ended (%v) before it said %q; it said %q\n%s", p.state, prefix, p.seen, p.tail())
	}
	return line
}

// next is expect, but the process may end before.
func (p *process) next(prefix string) (string, bool) {
	p.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return "", false
			}
			p.seen = append(p.seen, line)
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				return strings.TrimSpace(rest), true
			}
			if strings.HasPrefix(line, "error") {
				p.t.Fatalf("the process waited for to say %q said %q", prefix, line)
			}
		case <-limit.C:
			p.t.Fatalf("waited %v for %q; the process said %q", patience, prefix, p.seen)
		}
	}
}

// said returns what the process has said so far. It does not wait.
func (p *process) said() []string {
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return p.seen
			}
			p.seen = append(p.seen, line)
		default:
			return p.seen
		}
	}
}

// wait reads what the process still says, and waits for its end.
func (p *process) wait() *os.ProcessState {
	p.once.Do(func() {
		for line := range p.lines {
			p.seen = append(p.seen, line)
		}
		<-p.ended
	})
	return p.state
}

// kill does kill -9 and waits for the end.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	p.mustBeKilled(syscall.SIGKILL)
}

// mustBeKilled asserts that the process has died of the signal: else the fault did
// not occur.
func (p *process) mustBeKilled(by syscall.Signal) {
	p.t.Helper()
	status, ok := p.wait().Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != by {
		p.t.Fatalf("the process ended with %v, not killed by %v; it said %q\n%s", p.state, by, p.seen, p.tail())
	}
}

// mustEndWell asserts exit 0.
func (p *process) mustEndWell() {
	p.t.Helper()
	if !p.wait().Success() {
		p.t.Fatalf("the process ended with %v; it said %q\n%s", p.state, p.seen, p.tail())
	}
}

func (p *process) tail() string {
	text := p.stderr.String()
	return text[max(0, len(text)-4000):]
}
