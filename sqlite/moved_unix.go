//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlite

import (
	"errors"
	"syscall"
)

// identity tells files apart: a name that is deleted and made again leads to another one as
// long as the first is open.
type identity struct{ device, inode uint64 }

// identify looks where the path leads, without opening the file: see locate. Beneath os.Stat, which
// takes three times as long, once for each commit.
func identify(path string) (identity, error) {
	for {
		var st syscall.Stat_t
		err := syscall.Stat(path, &st)
		if err == nil {
			return identity{uint64(st.Dev), uint64(st.Ino)}, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return identity{}, err
		}
	}
}
