package sqlite

import (
	"sync/atomic"
	"time"
)

// lockWait records when a connection of the store last found that another connection has locked the file. A call that waits for the lock
// tries again every few milliseconds, so recent records mean that the file is locked now. That is the reason if a call ends at its deadline,
// even a call that waits for the store's only writing connection meanwhile.
type lockWait struct{ at atomic.Int64 } // in nanoseconds since the process began

// recentLockWait is the time for which a record counts as recent.
const recentLockWait = 200 * time.Millisecond

// note records err, if it says that the file is locked, and returns it. A nil lockWait records nothing.
func (l *lockWait) note(err error) error {
	if l != nil && isBusy(err) {
		l.at.Store(int64(time.Since(processBegan)))
	}
	return err
}

// isRecent reports whether the file was locked a moment ago.
func (l *lockWait) isRecent() bool {
	at := l.at.Load()
	return at != 0 && time.Since(processBegan)-time.Duration(at) < recentLockWait
}
