//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package sqlite

import "github.com/google/uuid"

// Without flock no worker is reported dead; takeover happens when its leases expire.

func (workerLockFolder) lock(uuid.UUID) (leave func(), err error) { return func() {}, nil }

func (workerLockFolder) isDead(uuid.UUID) bool { return false }

func (workerLockFolder) removeFileOfDeadWorker(uuid.UUID) {}
