//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package sqlite

import (
	"os"
	"sync"
)

// checkWritePermission leaves it to SQLite to find out whether the file can be written.
func checkWritePermission(string) error { return nil }

// fileID identifies a file: a number for each one that this process has seen. Where there are no inodes,
// os.SameFile tells files apart.
type fileID struct{ number int }

var seenFiles struct {
	sync.Mutex
	files []os.FileInfo
}

// fileIdentity returns the identity of the file at the path.
func fileIdentity(path string) (fileID, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileID{}, err
	}
	seenFiles.Lock()
	defer seenFiles.Unlock()
	for i, known := range seenFiles.files {
		if os.SameFile(known, info) {
			return fileID{i + 1}, nil
		}
	}
	seenFiles.files = append(seenFiles.files, info)
	return fileID{len(seenFiles.files)}, nil
}
