//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlite

import (
	"errors"
	"os"
	"syscall"

	"github.com/google/uuid"
)

// lock takes the lock on worker's file and answers how to give it back. flock is
// held by the open file, so the system drops it when the process dies, and a
// second store in this process sees it too. Go opens files so that no child
// process inherits them.
//
// The file is locked under another name and then given its own, so that nobody
// ever finds it unlocked while the worker lives.
func (p workerLocks) lock(worker uuid.UUID) (leave func(), err error) {
	if err := os.Mkdir(p.folder, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	path := p.path(worker)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := flock(f, syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := os.Rename(path+".new", path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		_ = os.Remove(path) // before the lock goes; a file left behind reads as a death, which is true
		_ = f.Close()
	}, nil
}

// isDead reports whether worker was here and its lock is free.
func (p workerLocks) isDead(worker uuid.UUID) bool {
	f, err := os.Open(p.path(worker))
	if err != nil {
		return false // never here, left cleanly, or not ours to see
	}
	defer f.Close()
	return flock(f, syscall.LOCK_SH) == nil
}

// removeDead removes the file of a worker that is gone.
func (p workerLocks) removeDead(worker uuid.UUID) {
	if p.isDead(worker) {
		_ = os.Remove(p.path(worker)) // only litter if it stays: the worker is out of the registry
	}
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
