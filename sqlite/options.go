package sqlite

import "time"

// Option changes how Open opens a file.
type Option func(*options)

type options struct {
	synchronous Durability
	patience    time.Duration
	migrate     bool
}

func defaults() options {
	return options{synchronous: Full, patience: 10 * time.Second, migrate: true}
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
func Synchronous(d Durability) Option { return func(o *options) { o.synchronous = d } }

// Patience is how long a call waits, within its context, while another process
// holds a lock on the file, before it answers that the database is not available.
// The default is ten seconds; zero waits for nobody. Open refuses less.
func Patience(d time.Duration) Option { return func(o *options) { o.patience = d } }

// WithoutMigrations refuses a file whose schema is not the one this code needs,
// instead of bringing it up to date.
func WithoutMigrations() Option { return func(o *options) { o.migrate = false } }
