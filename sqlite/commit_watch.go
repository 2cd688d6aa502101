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
	// commitPollInterval is the mean time between two checks whether another connection has committed, where the file system does not notify.
	// A check takes about four microseconds, and waking up for it more.
	commitPollInterval = 20 * time.Millisecond
	// watchedPollInterval is the same where the file system notifies.
	watchedPollInterval = 250 * time.Millisecond
	// A write to the WAL is notified before its commit can be seen, so checks follow: the first at once, and each after twice the time of
	// the one before, from firstSettleInterval up to commitPollInterval, for postNotificationCheckTime.
	firstSettleInterval       = 250 * time.Microsecond
	postNotificationCheckTime = time.Second
	// In each commitCountWindow, the commits that were seen are counted. With more than busyCommitsPerWindow, the watch is taken away, because it would
	// cost more than checks every commitPollInterval. It returns after a window with at most calmCommitsPerWindow.
	commitCountWindow    = 500 * time.Millisecond
	busyCommitsPerWindow = 100
	calmCommitsPerWindow = 15
	// After notificationsToTrust commits that were notified, checks are rare. After maxMissedNotifications in a row that were not, they are frequent again:
	// some file systems accept a watch and notify of nothing.
	notificationsToTrust   = 2
	maxMissedNotifications = 3
)

// commitWatch decides when to check whether another connection has committed: soon after the file system has notified of a write to the
// WAL, and from time to time. Only one goroutine uses it.
type commitWatch struct {
	watcher     *fsnotify.Watcher // nil: the system has no notifications
	folder, wal string
	watching    bool
	watchedPoll time.Duration // watchedPollInterval, but in tests

	notifiedSinceLastCommit bool // since the last commit that was seen
	notifiedAt              time.Time
	settleDelay             time.Duration // until the next check after a notification; zero: nothing was notified lately
	notifiedCommits         int           // commits that were notified, since misses was last maxMissedNotifications
	unnotifiedCommits       int           // commits in a row that were not
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

// watchFolder begins to watch the folder, because a WAL that is created anew is another file. Without permission or room for a watch, the
// checks stay frequent.
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

// noteCheck is called after each check. changed says whether there was a commit.
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
