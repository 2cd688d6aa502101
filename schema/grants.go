package schema

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed grants/*.sql
var grants embed.FS

// Role is a set of rights for a role of a PostgreSQL server. It contains only the rights that the work
// of such a role needs.
type Role string

const (
	// Owner owns the schema and applies its migrations.
	Owner Role = "owner"
	// Worker executes runs, and may call every method of an Engine.
	Worker Role = "worker"
	// Operator reads everything, pauses, resumes, cancels, signals, completes tokens, sets tags and sets schedules.
	Operator Role = "operator"
	// Starter starts runs and waits for their results.
	Starter Role = "starter"
	// Reader reads runs, steps, signals, tags, events, workers and schedules.
	Reader Role = "reader"
)

// Roles returns all roles.
func Roles() []Role { return []Role{Owner, Worker, Operator, Starter, Reader} }

// Grants returns the statements that give the existing database role grantee the rights of role, in the
// schema with durable's tables:
//
//	text, err := schema.Grants(schema.Worker, "durable", "shop_worker")
//
// Execute the statements of [Owner] before the migrations, which that role then applies. Execute the
// statements of the other roles after the migrations, and again after each new migration. One grantee
// may have several roles. Grants returns an error for an unknown role, and for a name that is empty or
// contains a NUL byte.
func Grants(role Role, schema, grantee string) (string, error) {
	if !slices.Contains(Roles(), role) {
		return "", fmt.Errorf("schema: there is no role %q: use one of %q", role, Roles())
	}
	for _, name := range []string{schema, grantee} {
		if name == "" || strings.ContainsRune(name, 0) {
			return "", fmt.Errorf("schema: %q is no name of a schema or a role: give the one that the server knows", name)
		}
	}
	text, err := grants.ReadFile("grants/" + string(role) + ".sql")
	if err != nil {
		panic("schema: " + err.Error())
	}
	return strings.NewReplacer(
		"durable_"+string(role), quoteIdentifier(grantee),
		"SCHEMA durable", "SCHEMA "+quoteIdentifier(schema),
		"durable.", quoteIdentifier(schema)+".",
	).Replace(string(text)), nil
}

// quoteIdentifier returns a name as a quoted SQL identifier.
func quoteIdentifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
