package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	memory    = "/dev/shm" // fsync costs nothing here
	needBytes = 2 << 30    // containers often have 64 MB there, which a server soon fills
	longest   = 60         // bytes of a directory's path: a socket's, below it, is limited to about 107
)

// folder is a server's directory. While its lock is held, nobody sweeps it.
type folder struct {
	path string
	lock *os.File
}

func newFolder(base string, a *account) (*folder, error) {
	if base == "" {
		base = defaultBase()
	}
	sweep(base)
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
	if free(memory) >= needBytes {
		return memory
	}
	if dir := os.TempDir(); len(dir)+20 <= longest {
		return dir
	}
	return "/tmp"
}

func (f *folder) prepare(a *account) error {
	if len(f.path) > longest {
		return fmt.Errorf("%s is too long for a unix socket below it: choose a Dir of at most %d bytes", f.path, longest-20)
	}
	if err := f.hold(); err != nil || a == nil {
		return err
	}
	return os.Chown(f.path, a.uid, a.gid)
}

// hold takes the lock before the file gets the name that sweep looks for.
func (f *folder) hold() error {
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

// sweep removes what servers left whose process died without closing them. It is
// housekeeping: what it cannot remove, it leaves.
func sweep(base string) {
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
