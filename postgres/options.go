package postgres

import (
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
)

// DefaultSchema is the schema of the tables unless the option Schema names another one.
const DefaultSchema = "durable"

// Option is an option of [Open], [New] and [Store.OpenSchema].
type Option func(*openOptions) error

type openOptions struct {
	schema           string
	migrate          bool
	allowAsyncCommit bool
	withoutListen    bool
	trustedOwners    []string
	givenOptions     map[string]bool
	userConfig       *pgxpool.Config                // of the user's pool, if Open creates it
	homeToFollow     *atomic.Pointer[citusLocation] // of the store, for that pool
}

// rejectRepeatedOption returns an error if the option was given before.
func (o *openOptions) rejectRepeatedOption(option string) error {
	if o.givenOptions[option] {
		return fmt.Errorf("postgres: %w: the option %s is given twice: leave one of them out", durable.ErrInvalidConfig, option)
	}
	o.givenOptions[option] = true
	return nil
}

// schemaName matches the allowed names: short enough to name a channel after them, and without characters
// that are hard to type in psql.
var schemaName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,47}$`)

// Schema puts the tables into the named schema instead of "durable", so that several installations can share a database. The name of the
// schema has up to 48 letters, digits and underscores, and does not begin with a digit or with pg_, which PostgreSQL keeps for itself.
func Schema(name string) Option {
	return func(o *openOptions) error {
		if !schemaName.MatchString(name) {
			return fmt.Errorf("postgres: %w: schema name %q: up to 48 letters, digits and underscores are allowed, and no digit first: choose another", durable.ErrInvalidConfig, name)
		}
		if strings.HasPrefix(name, "pg_") || name == "information_schema" {
			return fmt.Errorf("postgres: %w: schema name %q: PostgreSQL keeps names that begin with pg_, and information_schema, for itself: choose another", durable.ErrInvalidConfig, name)
		}
		o.schema = name
		return o.rejectRepeatedOption("Schema")
	}
}

// WithoutMigrations opens a database without migrating its schema, which is migrated by other means. With WithoutMigrations, Open and New
// return an error if the schema does not have the version that this code needs.
func WithoutMigrations() Option {
	return func(o *openOptions) error {
		o.migrate = false
		return o.rejectRepeatedOption("WithoutMigrations")
	}
}

// AllowAsyncCommit keeps the value of synchronous_commit that the role, the database or the connection string sets, even if it is off. If
// synchronous_commit is off, a crash of the server loses acknowledged transactions of its last moments, up to three times wal_writer_delay:
// steps run again, and runs and signals are lost. Without AllowAsyncCommit, the store changes synchronous_commit from off to on. The store
// keeps all other values of synchronous_commit in any case.
func AllowAsyncCommit() Option {
	return func(o *openOptions) error {
		o.allowAsyncCommit = true
		return o.rejectRepeatedOption("AllowAsyncCommit")
	}
}

// WithoutListen makes the store open no connection on which a worker listens for notifications and holds its presence lock. Use
// WithoutListen for databases without LISTEN, or if connections are scarce. With WithoutListen, workers find due runs by polling (see
// durable.Config.Poll), and find requests to pause or cancel a run when they renew the run's lease. With WithoutListen, other workers take
// over the runs of a dead worker only when the leases of these runs expire.
func WithoutListen() Option {
	return func(o *openOptions) error {
		o.withoutListen = true
		return o.rejectRepeatedOption("WithoutListen")
	}
}

// OwnedBy names roles that may own the schema and its tables, in addition to the connecting role, the owner of the database, and
// superusers. The owner of a table can execute code with the rights of the roles that use it. Therefore Open and New return an
// [*UntrustedOwnerError] if a role that is neither named in OwnedBy nor trusted anyway owns the schema or a table. In OwnedBy, name only
// roles that you trust as much as the program's own role.
func OwnedBy(roles ...string) Option {
	return func(o *openOptions) error {
		if len(roles) == 0 {
			return fmt.Errorf("postgres: %w: the option OwnedBy names no role: leave it out", durable.ErrInvalidConfig)
		}
		o.trustedOwners = append(o.trustedOwners, roles...)
		return nil
	}
}

func newOptions(opts []Option) (openOptions, error) {
	o := openOptions{schema: DefaultSchema, migrate: true, givenOptions: make(map[string]bool)}
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
