package postgres

import (
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/schema"
)

// UntrustedOwnerError is returned by Open and New when a role that is not trusted owns the schema, or a table or view in it; see [OwnedBy].
// A role that owns a table could execute code with the rights of the connecting role. If Open or New returns an UntrustedOwnerError, it has
// created and changed nothing.
type UntrustedOwnerError struct {
	Schema string
	Object string // the table or view; empty: the schema itself
	Owner  string // the role
}

// Error returns a message that says which object the role owns, and how to fix it.
func (e *UntrustedOwnerError) Error() string {
	what := fmt.Sprintf("schema %q", e.Schema)
	if e.Object != "" {
		what = fmt.Sprintf("%q in schema %q", e.Object, e.Schema)
	}
	return fmt.Sprintf("postgres: %s belongs to role %q, which could run code with the rights of this program's role: drop it or change its owner, choose another Schema, or, if that role is trusted, open the store with postgres.OwnedBy(%q)",
		what, e.Owner, e.Owner)
}

// checkSchemaOwners returns an *UntrustedOwnerError if a role that is not trusted owns the schema, or a table or view of
// durable in it.
func (s *database) checkSchemaOwners(ask roundTripFunc) error {
	var stranger *UntrustedOwnerError
	owners := s.trustedOwners
	if owners == nil {
		owners = []string{}
	}
	err := ask("look at who owns the schema", func(batch *pgx.Batch) {
		batch.Queue(s.statements.untrustedOwners, s.schema, relationNames(), owners)
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			found := UntrustedOwnerError{Schema: s.schema}
			err := rows.Scan(&found.Object, &found.Owner)
			if stranger == nil {
				stranger = &found
			}
			return err
		})
	})
	if err == nil && stranger != nil {
		return stranger
	}
	return err
}

var createdPattern = regexp.MustCompile(`(?m)^CREATE (?:TABLE|VIEW) durable\.(\w+)`)

// relationNames returns the names of the tables and views that the migrations create.
func relationNames() (names []string) {
	for _, m := range schema.Postgres() {
		for _, found := range createdPattern.FindAllStringSubmatch(m.SQL, -1) {
			names = append(names, found[1])
		}
	}
	return names
}
