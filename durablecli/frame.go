package durablecli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// globalFlags holds what all commands share: the global flags, and how to open the engine.
type globalFlags struct {
	givenEngine *durable.Engine  // nil: each command opens a database
	root        *cobra.Command   // below which all commands are
	clock       func() time.Time // of this machine

	url, file, schema string
	owners            []string
	patience          time.Duration
	output            string
	noColor           bool
}

// databaseVariable is the environment variable that names the database.
const databaseVariable = "DATABASE_URL"

// dryRunFlag is the flag of the commands that can tell what they would do.
const dryRunFlag = "dry-run"

func (f *globalFlags) addGlobalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVarP(&f.output, "output", "o", formatTable, "output format: "+strings.Join(formats, ", "))
	flags.BoolVar(&f.noColor, "no-color", false, "no colours; as the environment variable NO_COLOR")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	if f.givenEngine != nil {
		return
	}
	flags.StringVar(&f.url, "url", "", "PostgreSQL database, as postgres://user@host/database or key=value text (default: $"+databaseVariable+")")
	flags.StringVar(&f.file, "file", "", "SQLite database file")
	flags.StringVar(&f.schema, "schema", postgres.DefaultSchema, "PostgreSQL schema of the tables")
	flags.StringSliceVar(&f.owners, "owned-by", nil, "roles, besides your own, that may own the schema")
	f.patience = 10 * time.Second
	flags.Var(durationFlag{&f.patience}, "patience", "how long a write is retried while the database is not available")
}

// session is one execution of a command.
type session struct {
	*globalFlags
	*printer
	cmd    *cobra.Command
	args   []string
	engine *durable.Engine // nil for a command that needs none

	warnedOfPassword bool
}

// action is what a command does.
type action func(ctx context.Context, s *session) error

// withEngine makes the command do the action with an open engine.
func (f *globalFlags) withEngine(cmd *cobra.Command, do action) *cobra.Command {
	return f.withoutEngine(cmd, func(ctx context.Context, s *session) (err error) {
		engine, closeStore, err := f.open(ctx, s)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeStore()) }()
		s.useEngine(ctx, engine)
		err = do(ctx, s)
		if flag := cmd.Flags().Lookup(dryRunFlag); flag != nil && flag.Value.String() == "true" && s.writesTables() && ExitCode(&commandError{err}) != ExitUsage {
			s.writeMessage("this was a dry run: nothing was changed")
		}
		return err
	})
}

// useEngine makes the session use the engine and the time of its database: ages, and times relative to now, are by this time. If the database cannot
// be read, the first call of the command returns the error.
func (s *session) useEngine(ctx context.Context, engine *durable.Engine) {
	s.engine = engine
	if now, err := engine.Now(ctx); err == nil {
		offset := now.Sub(s.clock())
		s.now = func() time.Time { return s.clock().Add(offset) }
	}
}

// withoutEngine makes the command do the action without a database.
func (f *globalFlags) withoutEngine(cmd *cobra.Command, do action) *cobra.Command {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return newUsageError("%w: write %s", err, cmd.UseLine())
			}
			return nil
		}
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := f.newPrinter(cmd)
		if err == nil {
			err = do(cmd.Context(), &session{globalFlags: f, printer: p, cmd: cmd, args: args})
			// An interrupted call may return an error of the database that does not wrap the context's.
			if cmd.Context().Err() != nil && err != nil && !errors.Is(err, context.Canceled) {
				err = errors.Join(err, context.Cause(cmd.Context()), context.Canceled)
			}
		}
		if err != nil {
			return &commandError{err}
		}
		return nil
	}
	return cmd
}

// open returns the given engine, or one on the database that the flags or the environment name.
func (f *globalFlags) open(ctx context.Context, s *session) (*durable.Engine, func() error, error) {
	if f.givenEngine != nil {
		return f.givenEngine, func() error { return nil }, nil
	}
	target, err := f.findDatabase(s)
	if err != nil {
		return nil, nil, err
	}
	store, err := f.openStore(ctx, target, false)
	if err != nil {
		return nil, nil, &markedError{errDatabase, err}
	}
	engine, err := durable.New(store, durable.Config{Patience: f.patience})
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return engine, store.Close, nil
}

// openStore opens the database. If migrate is true, missing migrations are applied, and a file that does not exist is created; else
// a database whose schema is not the one of this code is refused.
func (f *globalFlags) openStore(ctx context.Context, d database, migrate bool) (durable.Store, error) {
	if d.file != "" {
		if _, err := os.Stat(d.file); errors.Is(err, os.ErrNotExist) && !migrate {
			return nil, fmt.Errorf("the file %q does not exist: check the path, or create it with durable migrate up", d.file)
		}
		var sqliteOpts []sqlite.Option
		if !migrate {
			sqliteOpts = append(sqliteOpts, sqlite.WithoutMigrations())
		}
		return storeOrNil(sqlite.Open(d.file, sqliteOpts...))
	}
	postgresOpts := []postgres.Option{postgres.Schema(f.schema)}
	if len(f.owners) > 0 {
		postgresOpts = append(postgresOpts, postgres.OwnedBy(f.owners...))
	}
	if !migrate {
		postgresOpts = append(postgresOpts, postgres.WithoutMigrations())
	}
	return storeOrNil(postgres.Open(ctx, d.url, postgresOpts...))
}

// storeOrNil returns a nil interface for a nil pointer.
func storeOrNil[S durable.Store](store S, err error) (durable.Store, error) {
	if err != nil {
		return nil, err
	}
	return store, nil
}

// database is the database of a command. Either field is set.
type database struct{ url, file string }

// findDatabase returns the database that the flags or the environment name.
func (f *globalFlags) findDatabase(s *session) (database, error) {
	switch {
	case f.url != "" && f.file != "":
		return database{}, newUsageError("--url and --file both name a database: leave one of them out")
	case f.url != "":
		if hasPassword(f.url) && !s.warnedOfPassword {
			s.warnedOfPassword = true
			s.warn("the password in --url is visible in the list of processes and in the history of the shell: use %s, PGPASSWORD or ~/.pgpass", databaseVariable)
		}
		return database{url: f.url}, nil
	case f.file != "":
		return database{file: f.file}, nil
	}
	value := os.Getenv(databaseVariable)
	path, isFile := strings.CutPrefix(value, "sqlite:")
	switch {
	case value == "":
		return database{}, newUsageError("no database is named: use --url, --file or the environment variable %s", databaseVariable)
	case isFile:
		return database{file: path}, nil
	}
	return database{url: value}, nil
}
