// Package pgtest lends PostgreSQL to tests and to the demo: a throwaway server, or
// databases on the one that DATABASE_URL names.
//
// A server is found in this order: DATABASE_URL; the programs of an installation (in
// PG_BINDIR, where Debian puts them, where pg_config says, on the PATH); and on Debian,
// as root, the package, which is then installed. Where there is none, tests fail
// and say what to install: they never skip.
//
// A throwaway server keeps its data in a short temporary folder, in memory if
// possible, listens on a socket in it and on a free port of 127.0.0.1, and dies with
// the process that started it, even when that is killed.
package pgtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Options change a server. The zero value is a server as production has it.
type Options struct {
	// NoSync turns fsync off: fast, and of no use to a test that crashes the server.
	NoSync bool
	// Settings are further lines of postgresql.conf.
	Settings []string
}

// Server is one PostgreSQL.
type Server struct {
	dir    string // of everything; removed by Close
	port   int
	owner  *account
	guard  *exec.Cmd // ends the server when this process ends
	leash  io.Closer // held open for the guard
	bindir string
}

// startTime bounds a server's start, and its recovery after a crash.
const startTime = time.Minute

// Start makes a cluster and starts its server.
func Start(o Options) (_ *Server, err error) {
	s := new(Server)
	if s.bindir, err = programs(); err != nil {
		return nil, err
	}
	if s.owner, err = serverAccount(); err != nil {
		return nil, err
	}
	if s.dir, err = tempDir(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.owner.own(s.dir); err != nil {
		return nil, err
	}
	init := s.command("initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "--no-sync", "--no-instructions",
		"-E", "UTF8", "--locale=C")
	if out, err := init.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pgtest: initdb: %w\n%s", err, out)
	}
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	settings := append([]string{
		"listen_addresses = '127.0.0.1'",
		fmt.Sprintf("port = %d", s.port),
		fmt.Sprintf("unix_socket_directories = '%s'", s.dir),
		"max_connections = 300",
		"logging_collector = off",
		"log_line_prefix = '%m [%p] '",
	}, o.Settings...)
	if o.NoSync {
		settings = append(settings, "fsync = off", "full_page_writes = off")
	}
	conf, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	_, err = conf.WriteString("\n" + strings.Join(settings, "\n") + "\n")
	if err := errors.Join(err, conf.Close()); err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	if err := s.startGuard(); err != nil {
		return nil, err
	}
	return s, s.Restart()
}

// Restart starts a server that was stopped or killed, and waits until it answers.
func (s *Server) Restart() error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	defer log.Close()
	run := s.command("pg_ctl", "start", "-D", s.data(), "-w", "-t", strconv.Itoa(int(startTime.Seconds())), "-s")
	run.Stdout, run.Stderr = log, log
	if err := run.Run(); err != nil {
		text, _ := os.ReadFile(s.logFile()) // for the message only
		return fmt.Errorf("pgtest: the server did not start: %w\n%s", err, text)
	}
	return nil
}

// Stop stops the server: "smart", "fast" or "immediate", as pg_ctl names them.
func (s *Server) Stop(mode string) error {
	if out, err := s.command("pg_ctl", "stop", "-D", s.data(), "-m", mode, "-w", "-s").CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: stop: %w\n%s", err, out)
	}
	return nil
}

// Kill9 kills the postmaster, and waits until its children are gone too. The files
// that name it are removed: nobody may be there to reap it, and a zombie would pass for
// a running server.
func (s *Server) Kill9() error {
	pid, err := s.Pid()
	if err != nil {
		return err
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("pgtest: kill the postmaster: %w", err)
	}
	for _, child := range append(strings.Fields(string(children)), strconv.Itoa(pid)) {
		if err := awaitEnd(child); err != nil {
			return err
		}
	}
	return errors.Join(
		os.Remove(filepath.Join(s.data(), "postmaster.pid")),
		os.Remove(filepath.Join(s.dir, fmt.Sprintf(".s.PGSQL.%d.lock", s.port))),
	)
}

// awaitEnd waits until the process is gone, or a zombie.
func awaitEnd(pid string) error {
	for until := time.Now().Add(startTime); time.Now().Before(until); {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("pgtest: process %s of the server does not end", pid)
}

// Pid is the postmaster's process.
func (s *Server) Pid() (int, error) {
	f, err := os.Open(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return 0, fmt.Errorf("pgtest: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	if !lines.Scan() {
		return 0, errors.New("pgtest: postmaster.pid is empty")
	}
	return strconv.Atoi(strings.TrimSpace(lines.Text()))
}

// URL is a superuser's, to the database "postgres", over TCP.
func (s *Server) URL() string { return s.Database("postgres") }

// Database is URL for another database.
func (s *Server) Database(name string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, url.PathEscape(name))
}

// Socket is URL over the unix socket.
func (s *Server) Socket(name string) string {
	return fmt.Sprintf("postgres:///%s?host=%s&port=%d&user=postgres", url.PathEscape(name), url.QueryEscape(s.dir), s.port)
}

// Port is where the server listens on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// Close ends the server and removes everything of it.
func (s *Server) Close() error {
	var errs []error
	if s.leash != nil {
		errs = append(errs, s.leash.Close(), s.guard.Wait()) // the guard stops the server
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// startGuard starts a shell that stops the server as soon as this process is gone,
// however it went: the pipe that it reads from ends then.
func (s *Server) startGuard() error {
	script := `read gone; "$0" stop -D "$1" -m immediate -w -s; [ -n "$gone" ] || rm -rf "$2"`
	s.guard = s.owner.as(exec.Command("/bin/sh", "-c", script, filepath.Join(s.bindir, "pg_ctl"), s.data(), s.dir))
	s.guard.Dir = "/"
	s.guard.SysProcAttr.Setpgid = true // a terminal's Ctrl-C is not for it
	leash, err := s.guard.StdinPipe()
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	if err := s.guard.Start(); err != nil {
		return fmt.Errorf("pgtest: start the guard: %w", err)
	}
	s.leash = leash
	return nil
}

func (s *Server) data() string    { return filepath.Join(s.dir, "data") }
func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := s.owner.as(exec.Command(filepath.Join(s.bindir, program), args...))
	cmd.Dir = s.dir
	return cmd
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("pgtest: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// tempDir is short, since the path of a socket has about a hundred bytes, and in
// memory if there is such a place.
func tempDir() (string, error) {
	for _, base := range []string{"/dev/shm", "/tmp", os.TempDir()} {
		if dir, err := os.MkdirTemp(base, "pgt"); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("pgtest: no temporary folder can be made in /dev/shm, /tmp or TMPDIR")
}
