package postgres

import (
	"fmt"
	"regexp"

	"github.com/seed8ec063be/durable"
)

// DefaultSchema is the schema that the tables are in unless Schema says otherwise.
const DefaultSchema = "durable"

// Option changes how a store is opened.
type Option func(*options) error

type options struct {
	schema  string
	migrate bool
	async   bool
	deaf    bool
	owners  []string
	given   map[string]bool
}

// once refuses an option that was given before.
func (o *options) once(option string) error {
	if o.given[option] {
		return fmt.Errorf("postgres: %w: the option %s is given twice: leave one of them out", durable.ErrInvalidConfig, option)
	}
	o.given[option] = true
	return nil
}

// schemaName keeps a name short enough for a channel to be named after it, and free
// of anything that would need thought when it is typed in psql.
var schemaName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,47}$`)

// Schema puts the tables into the named schema instead of "durable", so that several
// installations share a database. Up to 48 letters, digits and underscores.
func Schema(name string) Option {
	return func(o *options) error {
		if !schemaName.MatchString(name) {
			return fmt.Errorf("postgres: schema name %q: up to 48 letters, digits and underscores are allowed, and no digit first: choose another", name)
		}
		o.schema = name
		return o.once("Schema")
	}
}

// WithoutMigrations opens a database whose schema somebody else keeps, and refuses one
// that is not at the version that this code needs.
func WithoutMigrations() Option {
	return func(o *options) error {
		o.migrate = false
		return o.once("WithoutMigrations")
	}
}

// AllowAsyncCommit leaves synchronous_commit as the role, the database or the connection string
// sets it, also where that is off. Then a crash of the server loses what it acknowledged in its
// last moments, up to three times wal_writer_delay: steps run again, and runs and signals
// are gone. Without this option, transactions that would not wait for the disk are made to; values
// stronger than that are kept in any case.
func AllowAsyncCommit() Option {
	return func(o *options) error {
		o.async = true
		return o.once("AllowAsyncCommit")
	}
}

// WithoutListen does without the connection on which each worker listens for notifications, and holds the
// lock that shows that it lives: for databases without LISTEN, and where each connection counts. Then due runs are
// found by polling (see durable.Config.Poll), what is asked of a run that is executed is found when its lease
// is renewed, and the runs of a worker that died go to others when their leases end.
func WithoutListen() Option {
	return func(o *options) error {
		o.deaf = true
		return o.once("WithoutListen")
	}
}

// OwnedBy names roles that may own the schema and its tables, beside the connecting role, the owner
// of the database and superusers. Whoever owns a table can have code of theirs run with the
// rights of those who use it, so a schema of anybody else's is refused with an
// [*OwnerError]. Name only roles that you trust as you trust the program's own.
func OwnedBy(roles ...string) Option {
	return func(o *options) error {
		if len(roles) == 0 {
			return fmt.Errorf("postgres: %w: the option OwnedBy names no role: leave it out", durable.ErrInvalidConfig)
		}
		o.owners = append(o.owners, roles...)
		return nil
	}
}

func newOptions(opts []Option) (options, error) {
	o := options{schema: DefaultSchema, migrate: true, given: make(map[string]bool)}
	for i, opt := range opts {
		if opt == nil {
			return o, fmt.Errorf("postgres: %w: the Option at place %d of %d is nil: leave it out", durable.ErrInvalidConfig, i+1, len(opts))
		}
		if err := opt(&o); err != nil {
			return o, err
		}
	}
	return o, nil
}
