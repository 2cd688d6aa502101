package sqlite

import (
	"fmt"
	"time"

	"github.com/seed8ec063be/durable"
)

// Option is an option of [Open].
type Option func(*openOptions)

type openOptions struct {
	synchronous  Durability
	busyTimeout  time.Duration
	migrate      bool
	givenOptions map[string]bool
	err          error
}

// rejectRepeatedOption records that an option was given, and sets an error if it was given before.
func (o *openOptions) rejectRepeatedOption(option string) {
	if o.givenOptions[option] && o.err == nil {
		o.err = fmt.Errorf("sqlite: %w: the option %s is given twice: leave one of them out", durable.ErrInvalidConfig, option)
	}
	o.givenOptions[option] = true
}

func defaultOptions() openOptions {
	return openOptions{synchronous: Full, busyTimeout: 10 * time.Second, migrate: true, givenOptions: make(map[string]bool)}
}

// Durability says which crashes a committed transaction survives: [Full] or [Normal].
type Durability uint8

const (
	// Full syncs the log to the disk in each commit. A committed transaction survives a crash of the process and of the operating system,
	// and a power failure. Full is the default durability.
	Full Durability = iota

	// Normal syncs the log only at SQLite's checkpoints. A committed transaction survives a crash of any process. With Normal, a crash of
	// the operating system or a power failure may lose the last commits, each as a whole. Steps whose commits were lost are executed again.
	Normal
)

// Synchronous sets the durability of commits. The default is [Full].
func Synchronous(d Durability) Option {
	return func(o *openOptions) {
		o.rejectRepeatedOption("Synchronous")
		o.synchronous = d
	}
}

// BusyTimeout sets how long a call waits while another process holds a lock on the file. When the BusyTimeout has passed, the call returns
// durable.ErrUnavailable. A call that waits for a lock also stops waiting when its context ends. The default BusyTimeout is ten seconds.
// With a BusyTimeout of zero, calls do not wait for locks. [Open] refuses a negative BusyTimeout.
func BusyTimeout(d time.Duration) Option {
	return func(o *openOptions) {
		o.rejectRepeatedOption("BusyTimeout")
		o.busyTimeout = d
	}
}

// WithoutMigrations makes [Open] return durable.ErrSchema, instead of migrating, if the schema of the file is not the
// one that this version of the code needs.
func WithoutMigrations() Option {
	return func(o *openOptions) {
		o.rejectRepeatedOption("WithoutMigrations")
		o.migrate = false
	}
}
