package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

// jobVariable is the environment variable with the job of a helper process. The job is not passed as an
// argument, because other users can read arguments, and an address may contain a password.
const jobVariable = "DURABLE_BENCH_JOB"

// job is the task of a helper process.
type job struct {
	Role    string
	Store   string
	Address string
	Steps   int
	Payload int
	Lease   time.Duration // zero: the default

	Queue      string // of the runs that role "queuer" starts
	Keys       int    // how many group keys these have; zero: none
	Priorities bool   // they have all priorities in turns

	Workers int // of roles "idlers" and "fleet"
	Slots   int // of each worker of roles "fleet" and "live"
}

// The roles of helper processes. A helper reads the lines of its parent from its standard input, ends
// when that ends, and writes lines to its standard output.
var roles map[string]func(ctx context.Context, j *job, s durable.Store, said <-chan string) error

func init() { // not a literal: the roles start processes too
	roles = map[string]func(ctx context.Context, j *job, s durable.Store, said <-chan string) error{
		"starter": startRole,
		"queuer":  startQueued,
		"queued":  serveQueues,
		"greeter": greetingRole,
		"holder":  holdingRole,
		"idlers":  idlers,
		"fleet":   fleetMember,
		"live":    liveMember,
		"blind":   blindHoldingRole,
	}
}

// work is the main function of a helper process. It returns the exit code.
func work(text string) int {
	collect()
	if err := help(text); err != nil {
		fmt.Fprintln(os.Stderr, "bench: a process that helps:", err)
		return 1
	}
	return 0
}

func help(text string) (err error) {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	role := roles[j.Role]
	if role == nil {
		return fmt.Errorf("the role %q is not known", j.Role)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	said := make(chan string, 1024)
	go func() {
		defer stop() // the parent has closed it, or is dead
		defer close(said)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			said <- lines.Text()
		}
	}()
	s, err := openStore(ctx, j.Store, j.Address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return role(ctx, &j, s, said)
}

var saying sync.Mutex

// say writes a line to the parent.
func say(words ...any) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Fprintln(os.Stdout, words...)
}

// process is a helper process as its parent sees it.
type process struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	lines chan string // what it says; closed with its output
	err   error       // of the process; read after ended
	ended chan struct{}
}

// spawn starts a helper process.
func (at *site) spawn(j job) (*process, error) {
	j.Store, j.Address = at.store, at.address
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, lines: make(chan string, 1024), ended: make(chan struct{})}
	if p.input, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			p.lines <- lines.Text()
		}
		close(p.lines)
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// expect waits for a line that begins with the word, and returns the rest of the line.
func (p *process) expect(ctx context.Context, word string) (string, error) {
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				<-p.ended
				return "", fmt.Errorf("a process that helps ended before it said %q: %w", word, errors.Join(p.err, io.EOF))
			}
			if rest, found := strings.CutPrefix(line, word); found {
				return strings.TrimSpace(rest), nil
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// tell writes a line to the process.
func (p *process) tell(words ...any) error {
	_, err := fmt.Fprintln(p.input, words...)
	return err
}

// kill kills the process with SIGKILL, and returns when it has ended.
func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	go p.drain()
	<-p.ended
	var exit *exec.ExitError
	if err == nil && !(errors.As(p.err, &exit) && exit.ExitCode() == -1) { // no code: ended by a signal
		err = fmt.Errorf("a process ended before it was killed: %w", errors.Join(p.err, io.EOF))
	}
	return err
}

// stop requests the process to end, and waits for its end.
func (p *process) stop() error {
	err := p.input.Close()
	go p.drain()
	<-p.ended
	if p.err != nil {
		return p.err
	}
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// drain reads and discards the further lines of the process.
func (p *process) drain() {
	for range p.lines {
	}
}
