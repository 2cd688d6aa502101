package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A test binary that is started with this variable is a process that owns a server
// and waits to be killed.
const helperEnv = "PGTEST_HELPER"

func helper() {
	s, err := Start(context.Background(), Options{NoSync: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.Pid(), s.folder.path)
	io.Copy(io.Discard, os.Stdin) // until the end
}

func TestServerSurvives(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	if got := query(t, s.URL(), "SHOW fsync"); got != "on" {
		t.Errorf("fsync: got %s, want on", got)
	}
	query(t, s.URL(), "CREATE TABLE kept (n int)")
	deaths := []struct {
		name string
		die  func() error
	}{
		{"smart", func() error { return s.Stop(Smart) }},
		{"fast", func() error { return s.Stop(Fast) }},
		{"immediate", func() error { return s.Stop(Immediate) }},
		{"kill -9", s.Kill9},
		{"restart", func() error { return nil }},
	}
	addr := s.Addr()
	for i, d := range deaths {
		query(t, s.TCP(), "INSERT INTO kept VALUES ("+strconv.Itoa(i)+")")
		before := s.Pid()
		if err := d.die(); err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
		if d.name != "restart" {
			if got := s.Pid(); got != 0 {
				t.Errorf("%s: Pid is %d while the server is down, want 0", d.name, got)
			}
			if _, err := queryText(t.Context(), s.URL(), "SELECT 'up'"); err == nil {
				t.Errorf("%s: the server still replies", d.name)
			}
			if err := s.Stop(Fast); !errors.Is(err, errDown) {
				t.Errorf("%s: a second stop: got %v, want %v", d.name, err, errDown)
			}
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatalf("restart after %s: %v", d.name, err)
		}
		if s.Pid() == before || s.Addr() != addr {
			t.Errorf("restart after %s: pid %d at %s, want another pid than %d at %s", d.name, s.Pid(), s.Addr(), before, addr)
		}
		if got, want := query(t, s.URL(), "SELECT count(*)::text FROM kept"), strconv.Itoa(i+1); got != want {
			t.Errorf("rows after %s: got %s, want %s", d.name, got, want)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s := start(t, Options{NoSync: true, Settings: map[string]string{"max_connections": "20", "application_name": "it's"}})
	if got := query(t, s.URL(), "SHOW max_connections"); got != "20" {
		t.Errorf("max_connections: got %s, want 20", got)
	}
}

func TestTCPAsksForThePassword(t *testing.T) {
	t.Parallel()
	s := start(t, Options{NoSync: true})
	if _, err := queryText(t.Context(), "postgres://postgres:wrong@"+s.Addr()+"/postgres?sslmode=disable", "SELECT ''"); err == nil {
		t.Error("a wrong password was accepted over TCP")
	}
}

func TestFailedStartShowsTheLog(t *testing.T) {
	t.Parallel()
	short, err := os.MkdirTemp("", "pgt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	if err := os.Chmod(short, 0o755); err != nil { // the server's user must get there
		t.Fatal(err)
	}
	_, err = Start(t.Context(), Options{Dir: short, Settings: map[string]string{"shared_buffers": "nonsense"}})
	if err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("got %v, want the server's own words about shared_buffers", err)
	}
	if left, _ := os.ReadDir(short); len(left) != 0 {
		t.Errorf("the failed start left %v", left)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		s := start(t, Options{NoSync: true})
		if killed {
			if err := s.Kill9(); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := s.Close(); err != nil {
				t.Errorf("close (killed %v): %v", killed, err)
			}
		}
		if _, err := os.Stat(s.folder.path); !os.IsNotExist(err) {
			t.Errorf("%s is there after Close (killed %v): %v", s.folder.path, killed, err)
		}
	}
}

// A process that is killed takes its server with it, and the next one sweeps its files.
func TestServerDiesWithItsProcess(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), helperEnv+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the helper said %q: %v", line, err)
	}
	var pid int
	var dir string
	if _, err := fmt.Sscan(line, &pid, &dir); err != nil {
		t.Fatalf("the helper said %q: %v", line, err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("server %d does not run before the kill: %v", pid, err)
	}
	removeOrphans(filepath.Dir(dir))
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("a sweep took the folder of a running server: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // says that it was killed
	if !gone(pid, 2*time.Minute) {
		t.Fatalf("server %d runs on after its process was killed", pid)
	}
	// The server's other processes end after it, and keep the folder's lock until then.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		removeOrphans(filepath.Dir(dir))
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		if err := sleepPollInterval(ctx, nil); err != nil {
			t.Fatalf("%s was not swept: %v", dir, err)
		}
	}
}

// gone waits until a process that is not our child has ended.
func gone(pid int, within time.Duration) bool {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	deadline := time.After(within)
	for {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		// A zombie has ended, and waits for whoever adopted it.
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
		select {
		case <-tick.C:
		case <-deadline:
			return false
		}
	}
}

func start(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
