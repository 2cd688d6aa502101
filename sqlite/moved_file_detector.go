package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// MovedError is returned when the database file, or one of the files that SQLite keeps beside it, was deleted, moved or replaced while the
// store had it open. Further writes to a moved file would be lost with the process, so the store writes and acknowledges nothing any more,
// and Engine.Run returns a MovedError. For a MovedError, errors.Is finds durable.ErrMoved and durable.ErrClosed.
type MovedError struct {
	Path    string // of the file, of its -wal or of its -shm
	Problem string // "was deleted or moved away" or "was replaced by another file"
}

// Error returns a message that says which file was moved, and how.
func (e *MovedError) Error() string {
	return fmt.Sprintf("sqlite: %q %s while it was open: what is written now would be lost, so this store has stopped: "+
		"stop every process that uses the database, put the file and its -wal back together, or restore a backup, and start them again", e.Path, e.Problem)
}

// Unwrap returns [durable.ErrMoved] and [durable.ErrClosed].
func (e *MovedError) Unwrap() []error { return []error{store.ErrMoved, store.ErrClosed} }

// The files of a database, the most important ones first.
const (
	mainFile = iota
	walFile
	shmFile
	fileCount
	mainAndWALFileCount = walFile + 1 // how many of the files hold written data
)

// movedFileDetector detects that the path of the database or of a file beside it no longer leads to the file that the store has
// open. SQLite does not check this: it writes to the file that it has open, even if the file was deleted or replaced.
type movedFileDetector struct {
	paths              [fileCount]string
	identities         [fileCount]fileID // zero: the file did not exist
	identitiesRecorded atomic.Bool       // identities is set, and does not change any more
	recordedMove       atomic.Pointer[MovedError]
	lastCheck          atomic.Int64 // when, in nanoseconds since the process began; see checkPathsThrottled
}

func newMovedFileDetector(path string) *movedFileDetector {
	f := &movedFileDetector{paths: [fileCount]string{path, path + "-wal", path + "-shm"}}
	f.identities[mainFile], _ = fileIdentity(path) // the file may not exist yet
	return f
}

// recordFileIdentities records the files to which the paths lead now as the open files. It is called when a connection has opened all
// of them. From then on a connection stays open until the store is closed, so SQLite itself replaces none of the files.
func (f *movedFileDetector) recordFileIdentities() error {
	for i, path := range f.paths {
		id, err := fileIdentity(path)
		if before := f.identities[i]; before != (fileID{}) && (err != nil || before != id) {
			return f.markMoved(i, err)
		}
		f.identities[i] = id
	}
	f.identitiesRecorded.Store(true)
	return nil
}

// checkPaths returns a *MovedError if one of the first n paths leads to another file, or did so before: a file that was put
// back may lack what others wrote meanwhile.
func (f *movedFileDetector) checkPaths(n int) error {
	if err := f.movedError(); err != nil || !f.identitiesRecorded.Load() {
		return err
	}
	which, err := f.firstMovedPath(n)
	if which < 0 {
		return nil
	}
	// All files may have moved at once, after the first of them were checked.
	if first, firstErr := f.firstMovedPath(which); first >= 0 {
		which, err = first, firstErr
	}
	return f.markMoved(which, err)
}

// firstMovedPath returns the index of the first of the first n paths that leads to another file or to none, or -1 if there is no such
// path. If the path leads to no file, it also returns the error.
func (f *movedFileDetector) firstMovedPath(n int) (which int, err error) {
	for i, path := range f.paths[:n] {
		if f.identities[i] == (fileID{}) {
			continue
		}
		if id, err := fileIdentity(path); err != nil && pathIsGone(err) || err == nil && id != f.identities[i] {
			return i, err
		}
	}
	return -1, nil
}

// movedError returns the error that markMoved has recorded, or nil.
func (f *movedFileDetector) movedError() error {
	if moved := f.recordedMove.Load(); moved != nil {
		return moved
	}
	return nil
}

func (f *movedFileDetector) markMoved(which int, err error) error {
	e := &MovedError{Path: f.paths[which], Problem: "was replaced by another file"}
	if err != nil {
		e.Problem = "was deleted or moved away"
	}
	f.recordedMove.CompareAndSwap(nil, e)
	return f.movedError()
}

// readCheckInterval is the time for which readers rely on a check of the files. Reads lose nothing if a file has moved.
const readCheckInterval = 50 * time.Millisecond

var processBegan = time.Now()

// checkPathsThrottled calls checkPaths at most once in each readCheckInterval.
func (f *movedFileDetector) checkPathsThrottled() error {
	now := int64(time.Since(processBegan))
	last := f.lastCheck.Load()
	if now-last < int64(readCheckInterval) && last != 0 || !f.lastCheck.CompareAndSwap(last, now) {
		return f.movedError()
	}
	return f.checkPaths(fileCount)
}

// pathIsGone reports whether the error says that the path does not exist. Other errors say nothing about the file.
func pathIsGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
