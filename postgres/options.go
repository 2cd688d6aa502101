package postgres

import (
	"fmt"
	"regexp"
)

// DefaultSchema is the schema that the tables are in unless Schema says otherwise.
const DefaultSchema = "durable"

// Option changes how a store is opened.
type Option func(*options) error

type options struct {
	schema  string
	migrate bool
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
		return nil
	}
}

// WithoutMigrations opens a database whose schema somebody else keeps, and refuses one
// that is not at the version that this code needs.
func WithoutMigrations() Option {
	return func(o *options) error {
		o.migrate = false
		return nil
	}
}

func newOptions(opts []Option) (options, error) {
	o := options{schema: DefaultSchema, migrate: true}
	for _, opt := range opts {
		if err := opt(&o); err != nil {
			return o, err
		}
	}
	return o, nil
}
