package sqlite

import (
	"fmt"
	"time"

	"github.com/seed8ec063be/durable"
)

// Option changes how Open opens a file.
type Option func(*options)

type options struct {
	synchronous Durability
	busyTimeout time.Duration
	migrate     bool
	given       map[string]bool
	err         error
}

// markGiven refuses an option that was given before.
func (o *options) markGiven(option string) {
	if o.given[option] && o.err == nil {
		o.err = fmt.Errorf("sqlite: %w: the option %s is given twice: leave one of them out", durable.ErrInvalidConfig, option)
	}
	o.given[option] = true
}

func defaults() options {
	return options{synchronous: Full, busyTimeout: 10 * time.Second, migrate: true, given: make(map[string]bool)}
}

// Durability is what a commit waits for.
type Durability uint8

const (
	// Full syncs the log to the disk in each commit: what was acknowledged survives
	// the death of the process, of the operating system and of the power. The default.
	Full Durability = iota

	// Normal leaves the sync to the next checkpoint of the log. What was acknowledged
	// survives the death of any process, but the last commits may be lost, never
	// torn, when the operating system crashes or the power fails. Steps that were
	// lost run again.
	Normal
)

// Synchronous sets what a commit waits for.
func Synchronous(d Durability) Option {
	return func(o *options) {
		o.markGiven("Synchronous")
		o.synchronous = d
	}
}

// BusyTimeout is how long a call waits, within its context, while another process
// holds a lock on the file, before it answers that the database is not available.
// The default is ten seconds; zero waits for nobody. Open refuses less.
func BusyTimeout(d time.Duration) Option {
	return func(o *options) {
		o.markGiven("BusyTimeout")
		o.busyTimeout = d
	}
}

// WithoutMigrations refuses a file whose schema is not the one this code needs,
// instead of bringing it up to date.
func WithoutMigrations() Option {
	return func(o *options) {
		o.markGiven("WithoutMigrations")
		o.migrate = false
	}
}
