// Package schema holds the statements that create durable's tables, as readable
// .sql files for each kind of database, and the rule by which a store decides
// what to apply.
//
// Migrations only go forward. Each is applied in one transaction together with
// the row that records it, so that a process killed in the middle leaves the
// database at the version before. The stores apply them when they open a
// database; a DBA who wants to run them by hand prints them with Postgres or
// SQLite and opens the store without migrations. Each of PostgreSQL's has to be
// applied in one transaction: its first statement sets the search_path for that long.
// Grants returns the rights of the roles that then work with the tables.
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

// Migration is one numbered file.
type Migration struct {
	Version int    // from 1, without gaps
	Name    string // the file's name, for example 0001_core.sql
	SQL     string // one or more statements
}

// Postgres answers the migrations for PostgreSQL, in order. Their tables are in the
// schema "durable"; a store opened in another schema renames it in the text.
func Postgres() []Migration { return load("postgres") }

// SQLite answers the migrations for SQLite, in order.
func SQLite() []Migration { return load("sqlite") }

// Pending answers which of all are still to be applied to a database at version
// have (0: an empty one). A database newer than the code is refused: older code
// would not understand its rows.
func Pending(have int, all []Migration) ([]Migration, error) {
	if have < 0 || have > len(all) {
		return nil, fmt.Errorf("%w: the database is at version %d, this code knows up to %d: update durable in this program",
			store.ErrSchema, have, len(all))
	}
	return all[have:], nil
}

// Check refuses a database that is not at exactly the code's version. It is what a
// store opened without migrations asks.
func Check(have int, all []Migration) error {
	pending, err := Pending(have, all)
	if err != nil || len(pending) == 0 {
		return err
	}
	return fmt.Errorf("%w: the database is at version %d, this code needs %d: open the store with migrations, or apply %s and those after it",
		store.ErrSchema, have, len(all), pending[0].Name)
}

func load(dir string) []Migration {
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
