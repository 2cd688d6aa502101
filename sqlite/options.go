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

// Durability is the level of durability that a commit waits for.
type Durability uint8

const (
	// Full syncs the log to the disk in each commit. A committed transaction survives a
	// crash of the process and of the operating system, and a power failure. It is the default.
	Full Durability = iota

	// Normal syncs the log only at SQLite's checkpoints. A committed transaction survives a
	// crash of any process. If the operating system crashes or the power fails, the last
	// commits may be lost, each as a whole. Lost steps are executed again.
	Normal
)

// Synchronous sets the durability of commits. The default is [Full].
func Synchronous(d Durability) Option {
	return func(o *openOptions) {
		o.rejectRepeatedOption("Synchronous")
		o.synchronous = d
	}
}

// BusyTimeout sets how long a call waits while another process holds a lock on the file. After that the call returns
// durable.ErrUnavailable. A call also stops waiting when its context ends. The default is ten seconds. Zero means that
// calls do not wait. [Open] refuses negative values.
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
