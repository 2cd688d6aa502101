//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package sqlite

import (
	"os"
	"sync"
)

// mayWrite leaves it to SQLite to find out whether the file can be written.
func mayWrite(string) error { return nil }

// identity tells files apart, by a number for each that this process has met. Where there are no
// inodes, os.SameFile knows.
type identity struct{ number int }

var met struct {
	sync.Mutex
	files []os.FileInfo
}

func identify(path string) (identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, err
	}
	met.Lock()
	defer met.Unlock()
	for i, known := range met.files {
		if os.SameFile(known, info) {
			return identity{i + 1}, nil
		}
	}
	met.files = append(met.files, info)
	return identity{len(met.files)}, nil
}
