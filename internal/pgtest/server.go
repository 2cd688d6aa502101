package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options configure a server for Start. The zero value is a durable server, with fsync.
type Options struct {
	// Dir is the directory in which the server's temporary directory is created. If it is empty, an
	// in-memory file system is used if it has enough space, or else the system's temporary directory.
	// A benchmark sets a directory on a real disk.
	Dir string
	// NoSync disables fsync and full_page_writes. The server is faster, but loses its data if the
	// machine (not only the server) crashes.
	NoSync bool
	// Settings are further settings in postgresql.conf. They override the defaults of this package.
	Settings map[string]string
}

// Mode is how a server is stopped.
type Mode string

// The modes of pg_ctl stop.
const (
	Smart     Mode = "smart"     // waits until every client has gone
	Fast      Mode = "fast"      // rolls back and disconnects clients
	Immediate Mode = "immediate" // aborts at once; the next start performs recovery
)

const (
	startTimeout = 60 * time.Second // including recovery and the wait for backends of a killed postmaster
	stopTimeout  = 60 * time.Second
	pollEvery    = 5 * time.Millisecond
)

// Server is a PostgreSQL server that this process started. Its methods are safe for concurrent use.
type Server struct {
	bin      string
	account  *account
	folder   *folder
	base     string // Options.Dir, where folders are created
	name     string // the application_name of a standby
	options  Options
	password string
	port     int // kept over restarts, so that clients can reconnect

	mu       sync.Mutex // held while starting and stopping
	proc     *process   // nil once stopped
	hasRun   bool       // the server has run on its port before
	isFrozen bool
}

// Start creates a cluster and starts a server, which runs until Close or until this process dies.
func Start(ctx context.Context, o Options) (*Server, error) {
	bin, err := findPrograms(ctx)
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	account, err := serverAccount()
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	folder, err := newFolder(o.Dir, account)
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	s := &Server{bin: bin, account: account, folder: folder, base: o.Dir, options: o, password: rand.Text()}
	if err := s.create(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("pgtest: %w", err), s.Close())
	}
	return s, nil
}

func (s *Server) create(ctx context.Context, o Options) error {
	if err := s.newCluster(ctx); err != nil {
		return err
	}
	return s.configureAndStart(ctx, o)
}

// configureAndStart writes the settings and starts the server on a free port.
func (s *Server) configureAndStart(ctx context.Context, o Options) error {
	// Another process may take the free port before the server does. Then another port is tried.
	for try := 1; ; try++ {
		port, err := freePort(ctx)
		if err != nil {
			return err
		}
		s.port = port
		if err := os.WriteFile(s.dataPath("postgresql.auto.conf"), s.configText(o), 0o644); err != nil {
			return err
		}
		err = s.Restart(ctx)
		if err == nil || try == 5 || !strings.Contains(err.Error(), "could not bind") {
			return err
		}
	}
}

func (s *Server) dataPath(names ...string) string {
	return filepath.Join(append([]string{s.folder.path, "data"}, names...)...)
}

func (s *Server) initdb(ctx context.Context) error {
	secret := filepath.Join(s.folder.path, "password")
	if err := os.WriteFile(secret, []byte(s.password+"\n"), 0o600); err != nil {
		return err
	}
	defer os.Remove(secret)
	if s.account != nil {
		if err := os.Chown(secret, s.account.uid, s.account.gid); err != nil {
			return err
		}
	}
	// The socket is in a directory of this user, so it needs no password. TCP is open to every user of
	// the machine, so it does.
	cmd := s.command("initdb", "--pgdata", s.dataPath(), "--username=postgres", "--pwfile", secret,
		"--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := startChild(cmd)
	if err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return ctx.Err()
	}
	if p.err != nil {
		return fmt.Errorf("initdb: %w\n%s", p.err, tail(out.Bytes()))
	}
	return nil
}

func (s *Server) configText(o Options) []byte {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(s.port),
		"unix_socket_directories": s.folder.path,
		"max_connections":         "300",
		"log_line_prefix":         "%m [%p] ",
		"log_timezone":            "UTC",
		"max_wal_size":            "512MB",
		// Below the data, so that a killed server leaves nothing elsewhere.
		"dynamic_shared_memory_type": "mmap",
	}
	if o.NoSync {
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
	}
	for name, value := range o.Settings {
		settings[name] = value
	}
	var b bytes.Buffer
	for name, value := range settings {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(value, "'", "''"))
	}
	return b.Bytes()
}

func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, program), args...) // not CommandContext, because the server continues after ctx has ended
	cmd.Dir = s.folder.path
	cmd.SysProcAttr = childAttributes(s.account)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PG") { // PGDATA, PGPORT and the like are not ours
			cmd.Env = append(cmd.Env, v)
		}
	}
	// The dynamic linker resolves all symbols once in the postmaster, and not again in each backend that it forks.
	cmd.Env = append(cmd.Env, "LC_ALL=C", "LD_BIND_NOW=1")
	return cmd
}

// URL returns a superuser's URL over the unix socket.
func (s *Server) URL() string {
	return "postgres://postgres@/postgres?" + url.Values{"host": {s.folder.path}, "port": {strconv.Itoa(s.port)}}.Encode()
}

// TCP returns a superuser's URL over 127.0.0.1, for proxies. It contains a password.
func (s *Server) TCP() string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword("postgres", s.password), Host: s.Addr(),
		Path: "/postgres", RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Addr returns the TCP address, host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Log returns the end of the server's log.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logName())
	if err != nil {
		return err.Error()
	}
	return tail(text)
}

func (s *Server) logName() string { return filepath.Join(s.folder.path, "log") }

func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// tail returns the last 4 KiB of a program's output, which contain the reason of a failure.
func tail(text []byte) string {
	text = text[max(0, len(text)-4<<10):]
	return strings.TrimSpace(string(text))
}
