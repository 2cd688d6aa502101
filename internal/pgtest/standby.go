package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Standby copies the running server into a second one that streams from it, under the given
// name, and returns it when it accepts connections. It is asynchronous until
// [Server.Synchronous] names it. The caller closes both; the order does not matter.
func (s *Server) Standby(ctx context.Context, name string) (*Server, error) {
	folder, err := newFolder(s.base, s.account)
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	standby := &Server{bin: s.bin, account: s.account, folder: folder, base: s.base, password: s.password, options: s.options}
	err = standby.copyOf(ctx, s)
	if err == nil {
		standby.name = name
		err = standby.settleOn(ctx, standby.following(s))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pgtest: make standby %s: %w", name, err), standby.Close())
	}
	return standby, nil
}

// Follow makes this server, which must be down, a standby of primary under the given name, and returns when it
// accepts connections. It deletes the server's data, copies those of primary, and keeps the port: so
// URLs that name the server stay valid. A former primary returns in this way after a promotion.
func (s *Server) Follow(ctx context.Context, primary *Server, name string) error {
	if s.Pid() != 0 {
		return fmt.Errorf("pgtest: make standby %s: the server is running: stop it first", name)
	}
	s.freeSharedMemory()
	err := os.RemoveAll(s.data())
	if err == nil {
		err = s.copyOf(ctx, primary)
	}
	if err == nil {
		s.name = name
		err = os.WriteFile(s.data("postgresql.auto.conf"), s.config(s.following(primary)), 0o644)
	}
	if err == nil {
		err = s.Restart(ctx)
	}
	if err != nil {
		return fmt.Errorf("pgtest: make standby %s: %w", name, err)
	}
	return nil
}

// copyOf copies the data of the running primary, and marks them as those of a standby.
func (s *Server) copyOf(ctx context.Context, primary *Server) error {
	cmd := s.command("pg_basebackup", "--pgdata", s.data(), "--host", primary.folder.path, "--port", strconv.Itoa(primary.port),
		"--username", "postgres", "--checkpoint=fast", "--wal-method=stream", "--no-sync", "--no-manifest")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := own(cmd)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return ctx.Err()
	}
	if p.err != nil {
		return fmt.Errorf("pg_basebackup: %w\n%s", p.err, tail(out.Bytes()))
	}
	return os.WriteFile(s.data("standby.signal"), nil, 0o644)
}

// following returns the options of a standby of primary.
func (s *Server) following(primary *Server) Options {
	o := s.options
	o.Settings = map[string]string{
		"primary_conninfo": fmt.Sprintf("host=%s port=%d user=postgres application_name=%s", primary.folder.path, primary.port, s.name),
		// A standby that was away reconnects soon.
		"wal_retrieve_retry_interval": "100ms",
		"synchronous_standby_names":   "",
	}
	for name, value := range s.options.Settings {
		if _, ours := o.Settings[name]; !ours {
			o.Settings[name] = value
		}
	}
	return o
}

// Synchronous has every commit of this server wait until the standbys called names, which
// may be away, have it on disk; with no name, commits wait for nobody.
func (s *Server) Synchronous(ctx context.Context, names ...string) error {
	value := strings.Join(names, ",")
	return s.tune(ctx, "synchronous_standby_names", value)
}

// tune changes a setting of the running server, and waits until it holds.
func (s *Server) tune(ctx context.Context, name, value string) error {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, statement := range []string{"SET synchronous_commit = local", "ALTER SYSTEM SET " + name + " = '" + value + "'", "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("pgtest: set %s: %w", name, err)
		}
	}
	for {
		var now string
		if err := conn.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&now); err != nil {
			return err
		}
		if now == value { // here; the checkpointer, which tells the others who is waited for, reads it before it works
			_, err := conn.Exec(ctx, "CHECKPOINT")
			return err
		}
		if err := pause(ctx, nil); err != nil {
			return err
		}
	}
}

// CaughtUp waits until the standby called name has on disk all that this server has written.
func (s *Server) CaughtUp(ctx context.Context, name string) error {
	return s.untilTrue(ctx, "SELECT coalesce(bool_or(flush_lsn >= pg_current_wal_lsn()), false) FROM pg_stat_replication WHERE application_name = $1", name)
}

// untilTrue asks the server until it says yes.
func (s *Server) untilTrue(ctx context.Context, query string, args ...any) error {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for {
		yes := false
		if err := conn.QueryRow(ctx, query, args...).Scan(&yes); err != nil || yes {
			return err
		}
		if err := pause(ctx, nil); err != nil {
			return err
		}
	}
}

// Promote makes a standby a primary, and returns when it takes writes.
func (s *Server) Promote(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	promoted := false
	if err := conn.QueryRow(ctx, "SELECT pg_promote(true, 60)").Scan(&promoted); err != nil || !promoted {
		return errors.Join(fmt.Errorf("pgtest: promote %s: it said %v", s.name, promoted), err)
	}
	return nil
}

// Freeze stops every process of the server where it is (SIGSTOP): its sockets still accept
// connections, and nobody is told anything any more. Thaw lets it go on; so does Close.
func (s *Server) Freeze() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return errDown
	}
	s.frozen = true
	pid := s.proc.cmd.Process.Pid
	if err := stopProcess(pid); err != nil { // first, so that it makes no more
		return fmt.Errorf("pgtest: freeze: %w", err)
	}
	for _, child := range children(pid) {
		_ = stopProcess(child) // one that has just ended needs no stopping
	}
	return nil
}

// Thaw lets a frozen server go on.
func (s *Server) Thaw() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.thaw()
}

// thaw is called with mu held.
func (s *Server) thaw() error {
	if !s.frozen || !s.running() {
		return nil
	}
	s.frozen = false
	pid := s.proc.cmd.Process.Pid
	for _, child := range children(pid) {
		_ = continueProcess(child) // one that has ended needs nothing
	}
	return continueProcess(pid)
}

// Hosts is a superuser's URL over 127.0.0.1 that names several servers, made from one
// another, in this order. Of those that answer it chooses one that takes writes.
func Hosts(servers ...*Server) string {
	addresses := make([]string, len(servers))
	for i, s := range servers {
		addresses[i] = s.Addr()
	}
	first := servers[0]
	return "postgres://" + url.UserPassword("postgres", first.password).String() + "@" + strings.Join(addresses, ",") +
		"/postgres?sslmode=disable&target_session_attrs=read-write"
}

// Sockets is [Hosts] over unix sockets, where nobody is asked for a password: connecting costs the
// client almost nothing.
func Sockets(servers ...*Server) string {
	folders, ports := make([]string, len(servers)), make([]string, len(servers))
	for i, s := range servers {
		folders[i], ports[i] = s.folder.path, strconv.Itoa(s.port)
	}
	return "postgres://postgres@/postgres?" + url.Values{
		"host": {strings.Join(folders, ",")}, "port": {strings.Join(ports, ",")}, "target_session_attrs": {"read-write"},
	}.Encode()
}
