package faults

import (
	"bufio"
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// wrongNow is added to package time: by how many seconds the wall clock is off. The
// monotonic clock, which is given, stays right.
const wrongNow = `package time

import "syscall"

var wrongClock, _ = syscall.Getenv("WRONGCLOCK")

func wrongBy(mono int64) int64 {
	switch wrongClock {
	case "ahead":
		return 600
	case "behind":
		return -600
	case "jumping": // each 300 ms
		return (mono/300e6%3 - 1) * 600
	}
	return 0
}
`

// buildWrongClock builds the worker with a package time that has one more line: the file
// is the toolchain's own.
func buildWrongClock(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	where := exec.CommandContext(ctx, "go", "env", "GOROOT")
	where.Env = append(os.Environ(), "GOTOOLCHAIN=auto") // the one that go.mod asks for
	root, err := where.Output()
	if err != nil {
		t.Fatal("go env GOROOT:", err)
	}
	// By another name: beneath its module cache, where a toolchain may be that was fetched,
	// the go command replaces nothing.
	dir := t.TempDir()
	goroot := filepath.Join(dir, "goroot")
	if err := os.Symlink(strings.TrimSpace(string(root)), goroot); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(goroot, "src/time/time.go"))
	if err != nil {
		t.Fatal(err)
	}
	const reads = "\tsec, nsec, mono := runtimeNow()\n"
	if n := strings.Count(string(text), reads); n != 1 {
		t.Fatalf("time.Now of %s reads its clock otherwise (%d times %q): mend this test", runtime.Version(), n, reads)
	}
	replace := make(map[string]string)
	for name, text := range map[string]string{
		"time.go": strings.Replace(string(text), reads, reads+"\tsec += wrongBy(mono)\n", 1), "wrong.go": wrongNow,
	} {
		replace[filepath.Join(goroot, "src/time", name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	// Everything has to be compiled for this once, then it is in the build cache, wherever
	// these files are. Without optimizations it takes half the time.
	cmd := exec.CommandContext(ctx, filepath.Join(goroot, "bin/go"), "build", "-trimpath", "-gcflags=all=-N -l", "-ldflags=-s -w",
		"-overlay", filepath.Join(dir, "overlay.json"), "-o", filepath.Join(dir, "worker"), "./wrongclock")
	cmd.Env = append(os.Environ(), "GOROOT="+goroot, "GOTOOLCHAIN=local", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "worker")
}

// wrong is a worker process whose clock is wrong, and which does what it is told.
type wrong struct {
	*process
	name string
	in   io.WriteCloser
}

func spawnWrong(t *testing.T, program, clock string, db database, lease time.Duration) *wrong {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(program), lines: make(chan string, 1024), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "WRONGCLOCK="+clock, "WRONGCLOCK_NAME="+clock,
		"WRONGCLOCK_URL="+db.Where, "WRONGCLOCK_SCHEMA="+db.Schema, fmt.Sprint("WRONGCLOCK_LEASE=", lease))
	p.cmd.Stderr = &p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		_ = p.cmd.Wait() // its state says it
		p.state = p.cmd.ProcessState
		close(p.lines)
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		p.wait()
	})
	return &wrong{p, clock, in}
}

// do has the process do something, and waits until it has.
func (w *wrong) do(verb, id string, n any) {
	w.t.Helper()
	line := fmt.Sprint(verb, " ", id, " ", n)
	if d, ok := n.(time.Duration); ok {
		line = fmt.Sprint(verb, " ", id, " ", int64(d))
	}
	if _, err := io.WriteString(w.in, line+"\n"); err != nil {
		w.t.Fatal(err)
	}
	w.expect("done " + line)
}

// moment is the time that a step of those processes returns.
type moment struct {
	True, Wall time.Time
	Who        string
}

// namesake is a workflow of those processes, which this one only starts or looks at.
func namesake[I, O any](name string) *durable.Workflow[I, O] {
	return durable.Define(name, func(*durable.Ctx, I) (out O, err error) { return out, nil })
}
