//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package sqlite

import "github.com/google/uuid"

// Without flock no worker is reported dead; takeover happens when its leases expire.

func (workerLocks) lock(uuid.UUID) (leave func(), err error) { return func() {}, nil }

func (workerLocks) isDead(uuid.UUID) bool { return false }

func (workerLocks) removeDead(uuid.UUID) {}
