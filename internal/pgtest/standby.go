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

// Standby creates a streaming standby of the running server with the given application_name, and
// returns it when it accepts connections. Replication is asynchronous until [Server.RequireSynchronous] is
// called with the name. The caller closes both servers, in any order.
func (s *Server) Standby(ctx context.Context, name string) (*Server, error) {
	folder, err := newFolder(s.base, s.account)
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	standby := &Server{bin: s.bin, account: s.account, folder: folder, base: s.base, password: s.password, options: s.options}
	err = standby.copyPrimary(ctx, s)
	if err == nil {
		standby.name = name
		err = standby.configureAndStart(ctx, standby.standbyOptions(s))
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
	err := os.RemoveAll(s.dataPath())
	if err == nil {
		err = s.copyPrimary(ctx, primary)
	}
	if err == nil {
		s.name = name
		err = os.WriteFile(s.dataPath("postgresql.auto.conf"), s.configText(s.standbyOptions(primary)), 0o644)
	}
	if err == nil {
		err = s.Restart(ctx)
	}
	if err != nil {
		return fmt.Errorf("pgtest: make standby %s: %w", name, err)
	}
	return nil
}

// copyPrimary copies the data of the running primary, and creates the file that marks a standby.
func (s *Server) copyPrimary(ctx context.Context, primary *Server) error {
	cmd := s.command("pg_basebackup", "--pgdata", s.dataPath(), "--host", primary.folder.path, "--port", strconv.Itoa(primary.port),
		"--username", "postgres", "--checkpoint=fast", "--wal-method=stream", "--no-sync", "--no-manifest")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := startChild(cmd)
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
	return os.WriteFile(s.dataPath("standby.signal"), nil, 0o644)
}

// standbyOptions returns the options of a standby of primary.
func (s *Server) standbyOptions(primary *Server) Options {
	o := s.options
	o.Settings = map[string]string{
		"primary_conninfo": fmt.Sprintf("host=%s port=%d user=postgres application_name=%s", primary.folder.path, primary.port, s.name),
		// A standby that lost its connection reconnects soon.
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

// RequireSynchronous makes every commit of this server wait until the standbys with these names have written
// it to disk. The standbys need not be connected. Without names, commits wait for no standby.
func (s *Server) RequireSynchronous(ctx context.Context, names ...string) error {
	value := strings.Join(names, ",")
	return s.changeSetting(ctx, "synchronous_standby_names", value)
}

// changeSetting changes a setting of the running server, and waits until it is in effect.
func (s *Server) changeSetting(ctx context.Context, name, value string) error {
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
		if now == value { // in this session; the checkpointer publishes it to the others before it executes a checkpoint
			_, err := conn.Exec(ctx, "CHECKPOINT")
			return err
		}
		if err := sleepPollInterval(ctx, nil); err != nil {
			return err
		}
	}
}

// WaitUntilCaughtUp waits until the standby called name has written the whole WAL of this server to disk.
func (s *Server) WaitUntilCaughtUp(ctx context.Context, name string) error {
	return s.waitUntilTrue(ctx, "SELECT coalesce(bool_or(flush_lsn >= pg_current_wal_lsn()), false) FROM pg_stat_replication WHERE application_name = $1", name)
}

// waitUntilTrue repeats the query until it returns true.
func (s *Server) waitUntilTrue(ctx context.Context, query string, args ...any) error {
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
		if err := sleepPollInterval(ctx, nil); err != nil {
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
		return errors.Join(fmt.Errorf("pgtest: promote %s: pg_promote returned %v", s.name, promoted), err)
	}
	return nil
}

// Freeze stops every process of the server with SIGSTOP. Its sockets still accept connections, but the
// server does not respond. Thaw and Close continue the processes.
func (s *Server) Freeze() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isRunning() {
		return errDown
	}
	s.isFrozen = true
	pid := s.proc.cmd.Process.Pid
	if err := stopProcess(pid); err != nil { // first, so that it starts no further processes
		return fmt.Errorf("pgtest: freeze: %w", err)
	}
	for _, child := range children(pid) {
		_ = stopProcess(child) // fails only if the process has ended
	}
	return nil
}

// Thaw continues the processes of a frozen server.
func (s *Server) Thaw() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.thawLocked()
}

// thawLocked is Thaw for callers that hold s.mu.
func (s *Server) thawLocked() error {
	if !s.isFrozen || !s.isRunning() {
		return nil
	}
	s.isFrozen = false
	pid := s.proc.cmd.Process.Pid
	for _, child := range children(pid) {
		_ = continueProcess(child) // fails only if the process has ended
	}
	return continueProcess(pid)
}

// Hosts returns a superuser's URL over 127.0.0.1 that names a primary and its standbys, in this order. A
// client connects to the server that accepts writes.
func Hosts(servers ...*Server) string {
	addresses := make([]string, len(servers))
	for i, s := range servers {
		addresses[i] = s.Addr()
	}
	first := servers[0]
	return "postgres://" + url.UserPassword("postgres", first.password).String() + "@" + strings.Join(addresses, ",") +
		"/postgres?sslmode=disable&target_session_attrs=read-write"
}

// Sockets is [Hosts] over unix sockets. They need no password, so that connecting costs the client
// almost nothing.
func Sockets(servers ...*Server) string {
	folders, ports := make([]string, len(servers)), make([]string, len(servers))
	for i, s := range servers {
		folders[i], ports[i] = s.folder.path, strconv.Itoa(s.port)
	}
	return "postgres://postgres@/postgres?" + url.Values{
		"host": {strings.Join(folders, ",")}, "port": {strings.Join(ports, ",")}, "target_session_attrs": {"read-write"},
	}.Encode()
}
