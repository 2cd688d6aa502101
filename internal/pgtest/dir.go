package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	memoryFolder  = "/dev/shm" // an in-memory file system, where fsync costs nothing
	minFreeBytes  = 2 << 30    // free bytes that memory must have; containers often have only 64 MB
	maxPathLength = 60         // maximal bytes of the directory's path; the path of the socket in it is limited to about 107
)

// folder is the directory of a server. As long as its lock is held, sweep does not remove it.
type folder struct {
	path string
	lock *os.File
}

func newFolder(base string, a *account) (*folder, error) {
	if base == "" {
		base = defaultBase()
	}
	removeOrphans(base)
	path, err := os.MkdirTemp(base, "pgtest")
	if err != nil {
		return nil, err
	}
	f := &folder{path: path}
	if err := f.prepare(a); err != nil {
		f.remove()
		return nil, err
	}
	return f, nil
}

func defaultBase() string {
	if freeBytes(memoryFolder) >= minFreeBytes {
		return memoryFolder
	}
	if dir := os.TempDir(); len(dir)+20 <= maxPathLength {
		return dir
	}
	return "/tmp"
}

// tempInMemory makes os.TempDir of this process and of those that it starts a new folder in memory, so that tests with SQLite
// files do not wait for a disk. It does nothing if TMPDIR is set, or if there is no in-memory file system with enough room.
// The returned function removes the folder. If this process dies before, the next call removes it.
func tempInMemory() (remove func() error, err error) {
	if os.Getenv("TMPDIR") != "" || freeBytes(memoryFolder) < minFreeBytes {
		return func() error { return nil }, nil
	}
	f, err := newFolder(memoryFolder, nil)
	if err != nil {
		return nil, err
	}
	err = os.Chmod(f.path, 0o777|os.ModeSticky) // as /tmp is, for tests that run as another user
	if err == nil {
		err = os.Setenv("TMPDIR", f.path)
	}
	if err != nil {
		return nil, errors.Join(err, f.remove())
	}
	return func() error { return errors.Join(os.Unsetenv("TMPDIR"), f.remove()) }, nil
}

// InMemory runs the tests with their temporary files in memory (see tempInMemory), and returns their exit code.
func InMemory(run func() int) int {
	remove, err := tempInMemory()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	code := run()
	if err := remove(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return max(code, 1)
	}
	return code
}

func (f *folder) prepare(a *account) error {
	if len(f.path) > maxPathLength {
		return fmt.Errorf("%s is too long for a unix socket below it: choose a Dir of at most %d bytes", f.path, maxPathLength-20)
	}
	if err := f.lockFolder(); err != nil || a == nil {
		return err
	}
	return os.Chown(f.path, a.uid, a.gid)
}

// lockFolder locks the lock file before it renames it to the name that sweep searches for.
func (f *folder) lockFolder() error {
	lock, err := os.OpenFile(filepath.Join(f.path, "lock.new"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	f.lock = lock
	if err := lockFile(lock, false); err != nil {
		return err
	}
	return os.Rename(lock.Name(), filepath.Join(f.path, "lock"))
}

func (f *folder) remove() error {
	err := os.RemoveAll(f.path)
	if f.lock != nil {
		f.lock.Close()
	}
	return err
}

// removeOrphans removes the directories of servers whose process died without closing them. It ignores errors.
func removeOrphans(base string) {
	locks, _ := filepath.Glob(filepath.Join(base, "pgtest*", "lock"))
	for _, name := range locks {
		lock, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		info, err := lock.Stat()
		if err == nil && ownedByUs(info) && lockFile(lock, false) == nil {
			os.RemoveAll(filepath.Dir(name))
		}
		lock.Close()
	}
}
