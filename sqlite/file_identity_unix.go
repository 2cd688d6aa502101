//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlite

import (
	"errors"
	"syscall"
)

// fileID identifies a file. If a file is deleted and created again under the same name, the new file has another fileID as long as
// the first is open.
type fileID struct{ device, inode uint64 }

// checkWritePermission returns an error if this process has no permission to write to the file. It returns nil if there is no such
// file. It does not open the file: see resolvePath.
func checkWritePermission(path string) error {
	const forWriting = 2 // W_OK
	err := syscall.Access(path, forWriting)
	if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EPERM) {
		return err
	}
	return nil // SQLite reports other errors
}

// fileIdentityByStat makes the system call of os.Stat, which itself takes three times as long.
func fileIdentityByStat(path string) (fileID, error) {
	for {
		var st syscall.Stat_t
		err := syscall.Stat(path, &st)
		if err == nil {
			return fileID{uint64(st.Dev), uint64(st.Ino)}, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return fileID{}, err
		}
	}
}
