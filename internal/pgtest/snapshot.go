package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

var errRunning = errors.New("the server is running: stop it first")

// Snapshot copies the data of the server, which must be down, in place of an earlier snapshot. [Server.Restore] puts them back.
func (s *Server) Snapshot(ctx context.Context) error {
	if err := s.replaceDir(ctx, s.dataPath(), s.snapshotPath()); err != nil {
		return fmt.Errorf("pgtest: copy the data: %w", err)
	}
	return nil
}

// Restore replaces the data of the server, which must be down, with those of the last [Server.Snapshot]. Once restarted, the server
// goes on from there on the same timeline, as after the restore of a disk.
func (s *Server) Restore(ctx context.Context) error {
	s.freeSharedMemory()
	if err := s.replaceDir(ctx, s.snapshotPath(), s.dataPath()); err != nil {
		return fmt.Errorf("pgtest: restore the data: %w", err)
	}
	return nil
}

func (s *Server) snapshotPath() string { return s.dataPath() + ".snapshot" }

func (s *Server) replaceDir(ctx context.Context, from, to string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isRunning() {
		return errRunning
	}
	if _, err := os.Stat(from); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "cp", "-Rp", from, to)
	cmd.Dir = s.folder.path
	cmd.SysProcAttr = childAttributes(s.account)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(out))
	}
	return nil
}
