package sqlite

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// commitPollInterval is the mean time between two checks whether another connection has committed, if the file system sends no
	// notifications. A check takes about four microseconds; waking the process up for it takes longer.
	commitPollInterval = 20 * time.Millisecond
	// watchedPollInterval is the mean time between two checks if the file system sends notifications.
	watchedPollInterval = 250 * time.Millisecond
	// The notification of a write to the WAL comes before its commit is visible, so several checks follow: the first at once, the next
	// ones after intervals that double from firstSettleInterval up to commitPollInterval, until postNotificationCheckTime has passed.
	firstSettleInterval       = 250 * time.Microsecond
	postNotificationCheckTime = time.Second
	// In each commitCountWindow, the commits that were seen are counted. After a window with more than busyCommitsPerWindow commits, the watch
	// is removed, because it would cost more than a check every commitPollInterval. After a window with at most calmCommitsPerWindow commits,
	// the watch is added again.
	commitCountWindow    = 500 * time.Millisecond
	busyCommitsPerWindow = 100
	calmCommitsPerWindow = 15
	// After notificationsToTrust commits with a notification, checks are rare. After maxMissedNotifications commits in a row without a
	// notification, they are frequent again, because some file systems accept a watch and send no notifications.
	notificationsToTrust   = 2
	maxMissedNotifications = 3
)

// commitWatch decides when to check whether another connection has committed: soon after the file system has notified of a write to the
// WAL, and from time to time. Only one goroutine uses it.
type commitWatch struct {
	watcher     *fsnotify.Watcher // nil: the system has no notifications
	folder, wal string
	watching    bool
	watchedPoll time.Duration // watchedPollInterval; tests set another value

	notifiedSinceLastCommit bool // a notification has arrived since the last commit that was seen
	notifiedAt              time.Time
	settleDelay             time.Duration // the time until the next check after a notification; zero: no notification has arrived lately
	notifiedCommits         int           // commits with a notification, counted since unnotifiedCommits last reached maxMissedNotifications
	unnotifiedCommits       int           // commits in a row without a notification
	windowSince             time.Time
	commits                 int // seen since windowSince
}

func newCommitWatch(path string) *commitWatch {
	c := &commitWatch{folder: filepath.Dir(path), wal: filepath.Base(path) + "-wal", watchedPoll: watchedPollInterval, windowSince: time.Now()}
	if runtime.GOOS == "linux" { // elsewhere a watch of a folder opens each of its files, or is not tested
		if w, err := fsnotify.NewWatcher(); err == nil {
			c.watcher = w
			c.watchFolder()
		}
	}
	return c
}

func (c *commitWatch) close() {
	if c.watcher != nil {
		_ = c.watcher.Close()
	}
}

// watchFolder begins to watch the folder, and not the WAL file, because SQLite may create a new WAL file. If the system refuses the
// watch, the checks stay frequent.
func (c *commitWatch) watchFolder() {
	if c.watching = c.watcher.Add(c.folder) == nil; !c.watching {
		c.close()
		c.watcher = nil
	}
}

func (c *commitWatch) unwatchFolder() {
	_ = c.watcher.Remove(c.folder)
	c.watching, c.settleDelay = false, 0
}

// waitForNextCheck waits until the next check is due. It returns false when ctx has ended or done is closed.
func (c *commitWatch) waitForNextCheck(ctx context.Context, done <-chan struct{}) bool {
	var events chan fsnotify.Event
	var failures chan error
	if c.watcher != nil {
		events, failures = c.watcher.Events, c.watcher.Errors
	}
	timer := time.NewTimer(c.checkInterval())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-done:
			return false
		case <-timer.C:
			return true
		case e := <-events:
			if c.isWALWrite(e) {
				c.noteNotification()
				return true
			}
		case <-failures: // events were lost
			c.noteNotification()
			return true
		}
	}
}

// checkInterval returns the time until the next check.
func (c *commitWatch) checkInterval() time.Duration {
	poll := commitPollInterval
	if c.watching && c.notifiedCommits >= notificationsToTrust {
		poll = c.watchedPoll
	}
	poll = poll*3/4 + rand.N(poll/2) // random, so that processes do not check at the same time
	if c.settleDelay > 0 {
		return min(poll, c.settleDelay)
	}
	return poll
}

func (c *commitWatch) isWALWrite(e fsnotify.Event) bool {
	return filepath.Base(e.Name) == c.wal && e.Has(fsnotify.Write|fsnotify.Create)
}

// noteNotification notes a notification, and takes those that have arrived with it.
func (c *commitWatch) noteNotification() {
	for {
		select {
		case <-c.watcher.Events:
			continue
		default:
		}
		c.notifiedSinceLastCommit, c.notifiedAt, c.settleDelay = true, time.Now(), firstSettleInterval/2
		return
	}
}

// noteCheck is called after each check. The argument changed says whether there was a commit.
func (c *commitWatch) noteCheck(changed bool) {
	switch {
	case changed && c.notifiedSinceLastCommit:
		c.notifiedCommits, c.unnotifiedCommits = c.notifiedCommits+1, 0
		c.notifiedSinceLastCommit, c.settleDelay = false, 0
	case changed && c.watching:
		if c.unnotifiedCommits++; c.unnotifiedCommits >= maxMissedNotifications {
			c.notifiedCommits = 0
		}
	case c.settleDelay > 0:
		if c.settleDelay = min(2*c.settleDelay, commitPollInterval); time.Since(c.notifiedAt) > postNotificationCheckTime {
			c.settleDelay = 0
		}
	}
	if changed {
		c.commits++
	}
	now := time.Now()
	if now.Sub(c.windowSince) < commitCountWindow {
		return
	}
	switch {
	case c.watching && c.commits > busyCommitsPerWindow:
		c.unwatchFolder()
	case !c.watching && c.watcher != nil && c.commits <= calmCommitsPerWindow:
		c.watchFolder()
	}
	c.windowSince, c.commits = now, 0
}
