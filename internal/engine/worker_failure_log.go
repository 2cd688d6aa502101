package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

const (
	// failureLogInterval is the time between two lines about the same failure.
	failureLogInterval = time.Minute
	// secondOutageLogDelay is the time between the first line about an outage of the database and the second, which often has another reason:
	// the first failures say how the connections ended, and later ones why no other can be opened.
	secondOutageLogDelay = 10 * time.Second
)

// failureLog limits how often a worker logs that its loops fail and try again. All of them fail at the same time while the database is not
// available, several times a second. The zero value is ready for use.
type failureLog struct {
	mu             sync.Mutex
	inOutage       bool // a line about an outage was logged, and no heartbeat has succeeded since then
	outageLoggedAt time.Time
	outageInterval time.Duration            // from outageLoggedAt until the next line
	logged         map[string]loggedFailure // by message
}

// loggedFailure is the latest line with a message.
type loggedFailure struct {
	at   time.Time
	text string // of the error
}

// isOutage reports whether a call of a loop failed because the database was not available, or did not reply in time.
func isOutage(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// logFailure logs that a loop has failed and tries again. It logs an outage of the database in the same words for all loops: at once, after
// secondOutageLogDelay and then every failureLogInterval. It logs another failure at once, and then every failureLogInterval or when its
// error changes. The lines in between have the level Debug.
func (w *worker) logFailure(message string, err error, args ...any) {
	level := slog.LevelWarn
	if isOutage(err) {
		if w.failureLog.isOutageLineDue(time.Now()) {
			message = "the database is not available; the worker tries again until it is"
		} else {
			level = slog.LevelDebug
		}
	} else if !w.failureLog.isLineDue(message, err, time.Now()) {
		level = slog.LevelDebug
	}
	w.log.Log(context.Background(), level, message, append(args, telemetry.KeyError, err)...)
}

// logEndOfOutage logs that the database is available again, if logFailure has logged an outage. It is called after each heartbeat.
func (w *worker) logEndOfOutage() {
	if w.failureLog.endOutage() {
		w.log.Info("the database is available again")
	}
}

func (f *failureLog) isOutageLineDue(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.outageLoggedAt) < f.outageInterval {
		return false
	}
	f.outageInterval = secondOutageLogDelay
	if f.inOutage {
		f.outageInterval = failureLogInterval
	}
	f.inOutage, f.outageLoggedAt = true, now
	return true
}

// endOutage reports whether there was an outage. The next line about an outage comes no sooner than secondOutageLogDelay after the last.
func (f *failureLog) endOutage() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	ended := f.inOutage
	if f.inOutage = false; ended {
		f.outageInterval = secondOutageLogDelay
	}
	return ended
}

func (f *failureLog) isLineDue(message string, err error, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, is := f.logged[message]
	if is && now.Sub(last.at) < failureLogInterval && last.text == err.Error() {
		return false
	}
	if f.logged == nil {
		f.logged = make(map[string]loggedFailure)
	}
	f.logged[message] = loggedFailure{at: now, text: err.Error()}
	return true
}
