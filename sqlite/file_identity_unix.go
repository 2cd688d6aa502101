//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlite

import (
	"errors"
	"syscall"
)

// fileID tells files apart: a name that is deleted and made again leads to another one as
// long as the first is open.
type fileID struct{ device, inode uint64 }

// checkWritePermission returns an error if this process has no permission to write to the file, nil if there is none. It does not
// open the file: see resolvePath.
func checkWritePermission(path string) error {
	const forWriting = 2 // W_OK
	err := syscall.Access(path, forWriting)
	if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EPERM) {
		return err
	}
	return nil // what else is wrong, SQLite says
}

// fileIdentityByStat is beneath os.Stat, which takes three times as long.
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
