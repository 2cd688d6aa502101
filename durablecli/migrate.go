package durablecli

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable/internal/wording"
	"github.com/seed8ec063be/durable/schema"
)

// migration is one migration of the schema, with its state in a database.
type migration struct {
	Version int
	Name    string
	State   string // applied or pending
}

func migrateCommand(f *globalFlags) []*cobra.Command {
	if f.givenEngine != nil {
		return nil // the program's own store was migrated when it was opened
	}
	up := &cobra.Command{Use: "up", Args: cobra.NoArgs, Short: "Apply the pending migrations; a file that does not exist is created"}
	status := &cobra.Command{Use: "status", Args: cobra.NoArgs, Short: "List the migrations, and which of them the database has"}
	cmd := nounCommand(f, "migrate", "Show or apply the migrations of the schema", f.withoutEngine(up, migrateUp), f.withoutEngine(status, migrateStatus), migrateSQLCommand(f), grantsCommand(f))
	cmd.GroupID = groupMaintain
	return []*cobra.Command{cmd}
}

func migrateUp(ctx context.Context, s *session) error {
	target, err := s.findDatabase(s)
	if err != nil {
		return err
	}
	store, err := s.openStore(ctx, target, true)
	if err != nil {
		return &markedError{errDatabase, err}
	}
	s.writeMessage("the schema is at version %d", len(migrationsOf(target)))
	return store.Close()
}

// migrationsOf returns the migrations for the kind of a database.
func migrationsOf(d database) []schema.Migration {
	if d.file != "" {
		return schema.SQLite()
	}
	return schema.Postgres()
}

func migrateStatus(ctx context.Context, s *session) error {
	have, all, err := s.schemaVersion(ctx)
	if err != nil {
		return err
	}
	var migrations []migration
	for _, m := range all {
		state := "applied"
		if m.Version > have {
			state = "pending"
		}
		migrations = append(migrations, migration{m.Version, m.Name, state})
	}
	if err := printRows(s.printer, migrations, func(m *migration) string { return fmt.Sprint(m.Version) }, []column[migration]{
		{title: "VERSION", alignsRight: true, text: func(m *migration) string { return fmt.Sprint(m.Version) }},
		{title: "MIGRATION", text: func(m *migration) string { return m.Name }},
		{title: "STATE", text: func(m *migration) string { return m.State }, color: func(m *migration) color { return colorIf(m.State == "pending", yellow) }},
	}); err != nil {
		return err
	}
	pending, err := schema.Pending(have, all)
	if err == nil && len(pending) > 0 {
		s.writeMessage("%s pending: durable migrate up applies them, durable migrate sql writes them", wording.Count(len(pending), "migration is", "migrations are"))
	}
	return err
}

// schemaVersion returns the version of the database's schema, and all migrations for it.
func (s *session) schemaVersion(ctx context.Context) (int, []schema.Migration, error) {
	target, err := s.findDatabase(s)
	if err != nil {
		return 0, nil, err
	}
	inspected, err := s.inspect(ctx, target)
	if err != nil {
		return 0, nil, &markedError{errDatabase, err}
	}
	defer inspected.close()
	have, err := inspected.schemaVersion(ctx)
	if err != nil {
		return 0, nil, &markedError{errDatabase, err}
	}
	return have, migrationsOf(target), nil
}

func migrateSQLCommand(f *globalFlags) *cobra.Command {
	var all string
	cmd := &cobra.Command{
		Use: "sql", Args: cobra.NoArgs,
		Short:   "Write the pending migrations as SQL, for a DBA to apply",
		Example: "  durable migrate sql > pending.sql\n  durable migrate sql --all postgres",
	}
	cmd.Flags().StringVar(&all, "all", "", "write all migrations for postgres or sqlite, without a database")
	return f.withoutEngine(cmd, func(ctx context.Context, s *session) error {
		var target database
		have := 0
		switch all {
		case "postgres":
			target.url = all
		case "sqlite":
			target.file = all
		case "":
			var err error
			if have, _, err = s.schemaVersion(ctx); err != nil {
				return err
			}
			if target, err = s.findDatabase(s); err != nil {
				return err
			}
		default:
			return newUsageError("--all is %q: use postgres or sqlite", all)
		}
		pending, err := schema.Pending(have, migrationsOf(target))
		if err != nil {
			return err
		}
		for _, m := range pending {
			if err := s.write(s.migrationText(target, m)); err != nil {
				return err
			}
		}
		if len(pending) == 0 {
			s.writeMessage("no migration is pending")
		}
		return nil
	})
}

// migrationText returns a migration as one transaction for psql or sqlite3.
func (f *globalFlags) migrationText(d database, m schema.Migration) string {
	text := m.SQL
	if d.file != "" {
		text += fmt.Sprintf("\nINSERT INTO durable_migration (version, name, applied_at) VALUES (%d, '%s', CAST(unixepoch('subsec') * 1000000 AS INTEGER));", m.Version, m.Name)
		if m.Version == 1 {
			text = "CREATE TABLE IF NOT EXISTS durable_migration (version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT;\n" + text
		}
	} else {
		text = f.withSchema(text)
	}
	return fmt.Sprintf("-- %s\nBEGIN;\n%s\nCOMMIT;\n\n", m.Name, strings.TrimSpace(text))
}

// withSchema returns SQL for the schema of --schema.
func (f *globalFlags) withSchema(text string) string {
	quoted := pgx.Identifier{f.schema}.Sanitize()
	return strings.NewReplacer("durable.", quoted+".", "SCHEMA durable", "SCHEMA "+quoted).Replace(text)
}

func grantsCommand(f *globalFlags) *cobra.Command {
	var names []string
	for _, role := range schema.Roles() {
		names = append(names, string(role))
	}
	roles := strings.Join(names, ", ")
	cmd := &cobra.Command{
		Use: "grants ROLE GRANTEE", Args: cobra.ExactArgs(2),
		Short:   "Write the statements that give a PostgreSQL role its rights: " + roles,
		Example: "  durable migrate grants operator ann | psql shop",
	}
	return f.withoutEngine(cmd, func(_ context.Context, s *session) error {
		text, err := schema.Grants(schema.Role(s.args[0]), s.globalFlags.schema, s.args[1])
		if err != nil {
			return &markedError{errUsage, err}
		}
		return s.write(text)
	})
}
