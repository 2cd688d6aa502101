package sqlite

import (
	"context"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// workerLockFolder is the folder that holds one locked file for each live worker.
type workerLockFolder struct{ folder string }

func newWorkerLockFolder(path string) workerLockFolder {
	return workerLockFolder{folder: path + "-workers"}
}

func (p workerLockFolder) lockFilePath(worker uuid.UUID) string {
	return filepath.Join(p.folder, worker.String())
}

// Listen implements store.Store. SQLite does not tell what a commit changed, so Listen gives both hints for every commit of
// another connection. That includes this store's own commits, which at worst cause a query that finds nothing.
func (s *database) Listen(ctx context.Context, worker uuid.UUID, onHint func(store.WakeHint)) error {
	s.mu.Lock()
	if s.closed.Load() {
		s.mu.Unlock()
		return s.wrapError("attend", store.ErrClosed)
	}
	s.listeners[&onHint] = struct{}{}
	s.activeListeners.Add(1)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listeners, &onHint)
		s.mu.Unlock()
		s.activeListeners.Done()
	}()
	// The lock only speeds up takeover: without it, takeover happens when the lease expires.
	leave, err := s.workerLocks.lock(worker)
	if err == nil {
		defer leave()
	}
	watch := newCommitWatch(s.path)
	defer watch.close()
	for ctx.Err() == nil {
		s.pollCommits(ctx, watch, onHint) // returns early if its connection fails
		if err := s.files.movedError(); err != nil {
			sendHints(onHint, store.HintClaim|store.HintOwnedRunChange)
			return s.wrapError("attend", err)
		}
		if !watch.waitForNextCheck(ctx, s.done) {
			break
		}
	}
	if s.closed.Load() && ctx.Err() == nil {
		return s.wrapError("attend", store.ErrClosed)
	}
	return nil
}

// pollCommits gives hints after the commits of other connections, until ctx ends, the store is closed, or reading
// fails.
func (s *database) pollCommits(ctx context.Context, watch *commitWatch, onHint func(store.WakeHint)) {
	_ = s.withConn(ctx, s.listenerDB, "attend", func(c *conn) error {
		seen, err := queryInt(c, qDataVersion)
		if err != nil {
			return err
		}
		sendHints(onHint, store.HintClaim|store.HintOwnedRunChange) // for commits before the first read of this connection
		for watch.waitForNextCheck(ctx, s.done) {
			if err := s.files.checkPaths(fileCount); err != nil {
				return err
			}
			version, err := queryInt(c, qDataVersion)
			if err != nil {
				return err
			}
			watch.noteCheck(version != seen)
			if version != seen {
				seen = version
				sendHints(onHint, store.HintClaim|store.HintOwnedRunChange)
			}
		}
		return nil
	})
}
