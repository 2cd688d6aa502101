package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// newTestWatch returns a watch of a database file in a new folder, which polls only once an hour when it trusts notifications.
func newTestWatch(t *testing.T) (c *commitWatch, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "durable.db")
	c = newCommitWatch(path)
	t.Cleanup(c.close)
	if !c.watching {
		t.Skip("this system has no notifications")
	}
	c.watchedPoll = time.Hour
	return c, path
}

// waits reports whether wait returns because a check is due.
func (c *commitWatch) waits(t *testing.T, most time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	return c.waitForNextCheck(ctx, nil)
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("frames"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// After notificationsToTrust commits were notified, checks follow notifications, also of a WAL that was created anew, and not writes to other
// files.
func TestCommitWatchTrustsNotifications(t *testing.T) {
	c, path := newTestWatch(t)
	for range notificationsToTrust {
		write(t, path+"-wal")
		for c.notifiedSinceLastCommit = false; !c.notifiedSinceLastCommit; {
			if !c.waits(t, time.Minute) {
				t.Fatal("a write to the WAL was not notified")
			}
		}
		c.noteCheck(true)
	}
	for _, change := range []func(){
		func() { write(t, path+"-wal") },
		func() {
			if err := os.Remove(path + "-wal"); err != nil {
				t.Fatal(err)
			}
			write(t, path+"-wal")
		},
	} {
		change()
		if !c.waits(t, time.Minute) {
			t.Fatal("a write to the WAL was not notified")
		}
		c.noteCheck(false)
		if c.settleDelay == 0 || !c.waits(t, time.Minute) {
			t.Fatal("no further check follows the first one, which came before the commit")
		}
		c.noteCheck(true)
		for c.waits(t, 10*time.Millisecond) { // what was notified together with it
			c.noteCheck(false)
		}
	}
	c.settleDelay = 0
	write(t, path)
	if c.waits(t, 50*time.Millisecond) {
		t.Error("a write to another file was taken for a commit")
	}
}

// A watch that notifies of nothing, as some file systems have it, leads to frequent checks.
func TestCommitWatchDistrustsSilence(t *testing.T) {
	c, _ := newTestWatch(t)
	c.notifiedCommits = notificationsToTrust
	if got := c.checkInterval(); got < time.Minute {
		t.Errorf("checks follow after %v while notifications are trusted", got)
	}
	for range maxMissedNotifications {
		c.noteCheck(true)
	}
	if got := c.checkInterval(); got > 2*commitPollInterval {
		t.Errorf("checks follow after %v although commits were not notified", got)
	}
	c.notifiedSinceLastCommit = true
	c.noteCheck(true)
	c.notifiedSinceLastCommit = true
	c.noteCheck(true)
	if got := c.checkInterval(); got < time.Minute {
		t.Errorf("checks follow after %v although commits are notified again", got)
	}
}

// Many commits take the watch away, and a calm window brings it back. The checks after a notification end after postNotificationCheckTime.
func TestCommitWatchUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &commitWatch{watchedPoll: time.Hour, watching: true, notifiedCommits: notificationsToTrust, windowSince: time.Now(), folder: t.TempDir()}
		c.notifiedSinceLastCommit, c.notifiedAt, c.settleDelay = true, time.Now(), firstSettleInterval
		for range 2 * int(postNotificationCheckTime/commitPollInterval) {
			time.Sleep(c.checkInterval())
			c.noteCheck(false)
			if c.settleDelay == 0 {
				break
			}
		}
		if c.settleDelay != 0 || c.checkInterval() < time.Minute {
			t.Errorf("checks still follow after %v", c.settleDelay)
		}
	})
	c, _ := newTestWatch(t)
	c.notifiedCommits = notificationsToTrust
	for range busyCommitsPerWindow + 1 {
		c.noteCheck(true)
	}
	c.windowSince = time.Now().Add(-commitCountWindow)
	c.noteCheck(true)
	if c.watching || c.checkInterval() > 2*commitPollInterval {
		t.Error("the file is watched under load")
	}
	c.windowSince = time.Now().Add(-commitCountWindow)
	c.noteCheck(false)
	if !c.watching {
		t.Error("the file is not watched after the load")
	}
}
