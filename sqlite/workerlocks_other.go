//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package sqlite

import "github.com/google/uuid"

// Without flock no worker is reported dead; takeover happens when its leases expire.

func (p presence) enter(uuid.UUID) (leave func(), err error) { return func() {}, nil }

func (p presence) gone(uuid.UUID) bool { return false }

func (p presence) bury(uuid.UUID) {}
