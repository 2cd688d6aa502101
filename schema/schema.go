// Package schema contains the migrations that create durable's tables, as .sql files for each kind of
// database, and determines which of them a database still needs.
//
// There are no down migrations. A store applies the pending migrations when it is opened. Each
// migration is one transaction, which also records the migration. If the process is killed during a
// migration, the database remains at the version before.
//
// To apply the migrations by hand, print them with [Postgres] or [SQLite], and open the store without
// migrations. Apply each file for PostgreSQL in one transaction, because its first statement sets the
// search_path for the transaction. [Grants] returns the statements that give a database role its
// rights to the tables.
package schema

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/seed8ec063be/durable/internal/store"
)

//go:embed postgres/*.sql sqlite/*.sql
var files embed.FS

// Migration is one numbered file of SQL statements.
type Migration struct {
	Version int    // from 1, without gaps
	Name    string // the file's name, for example 0001_core.sql
	SQL     string // one or more statements
}

// Postgres returns the migrations for PostgreSQL, in order. They use the schema "durable". A store that
// is opened with another schema replaces the name in the text.
func Postgres() []Migration { return readMigrations("postgres") }

// SQLite returns the migrations for SQLite, in order.
func SQLite() []Migration { return readMigrations("sqlite") }

// Pending returns the migrations in all that a database at version have still needs. An empty database
// has version 0. Pending returns an error if the database has a newer version than the code, because
// older code does not understand its rows.
func Pending(have int, all []Migration) ([]Migration, error) {
	if have < 0 || have > len(all) {
		return nil, fmt.Errorf("%w: the database is at version %d, this code knows up to %d: update durable in this program",
			store.ErrSchema, have, len(all))
	}
	return all[have:], nil
}

// Check returns an error unless the database has exactly the version of the code. A store that is
// opened without migrations calls it.
func Check(have int, all []Migration) error {
	pending, err := Pending(have, all)
	if err != nil || len(pending) == 0 {
		return err
	}
	return fmt.Errorf("%w: the database is at version %d, this code needs %d: open the store with migrations, or apply %s and those after it",
		store.ErrSchema, have, len(all), pending[0].Name)
}

func readMigrations(dir string) []Migration {
	entries, err := fs.ReadDir(files, dir) // sorted by name
	if err != nil {
		panic("schema: embedded folder " + dir + " is missing: " + err.Error())
	}
	all := make([]Migration, 0, len(entries))
	for i, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			panic("schema: " + e.Name() + " breaks the numbering of " + dir)
		}
		text, err := files.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			panic("schema: " + err.Error())
		}
		all = append(all, Migration{Version: version, Name: e.Name(), SQL: string(text)})
	}
	return all
}
