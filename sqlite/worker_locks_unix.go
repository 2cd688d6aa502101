//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlite

import (
	"errors"
	"os"
	"syscall"

	"github.com/google/uuid"
)

// lock locks the worker's file. The returned function removes the file and releases the lock. An flock belongs to the
// open file: the operating system releases it when the process dies, and another store in this process sees it. Go
// opens files so that child processes do not inherit them.
//
// The file is locked under a temporary name and then renamed, so that nobody ever sees an unlocked file of a live
// worker.
func (p workerLockFolder) lock(worker uuid.UUID) (leave func(), err error) {
	if err := os.Mkdir(p.folder, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	path := p.lockFilePath(worker)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := os.Rename(path+".new", path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		_ = os.Remove(path) // before the lock is released; a file that remains reports the worker as dead, which is true
		_ = f.Close()
	}, nil
}

// isDead reports whether the worker's file exists and its lock is free. It makes three system calls; with os.Open it would make eight,
// and an idle process checks its neighbours several times a second.
func (p workerLockFolder) isDead(worker uuid.UUID) bool {
	fd, err := syscall.Open(p.lockFilePath(worker), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false // the worker never locked its file, stopped cleanly, the file is not accessible, or a signal interrupted the call
	}
	defer func() { _ = syscall.Close(fd) }()
	return flock(fd, syscall.LOCK_SH) == nil
}

// removeFileOfDeadWorker removes the file of a dead worker.
func (p workerLockFolder) removeFileOfDeadWorker(worker uuid.UUID) {
	if p.isDead(worker) {
		_ = os.Remove(p.lockFilePath(worker)) // an error is harmless: the worker is no longer in the registry
	}
}

func flock(fd, how int) error {
	for {
		err := syscall.Flock(fd, how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
