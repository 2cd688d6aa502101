package schema

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed grants/*.sql
var grants embed.FS

// Role is what a role of a PostgreSQL server is for. Each has the rights that its work needs, and no
// others.
type Role string

const (
	// Owner owns the schema and applies its migrations.
	Owner Role = "owner"
	// Worker executes runs, and does what an Engine can do otherwise.
	Worker Role = "worker"
	// Operator reads everything, pauses, resumes, cancels, signals, completes tokens and sets tags.
	Operator Role = "operator"
	// Starter starts runs and waits for their results.
	Starter Role = "starter"
	// Reader reads runs, steps, signals, tags, events and workers.
	Reader Role = "reader"
)

// Roles returns all roles.
func Roles() []Role { return []Role{Owner, Worker, Operator, Starter, Reader} }

// Grants returns the statements with which a DBA gives the role called grantee, which exists, the rights of
// role in the schema that durable's tables are in. Owner's come before the migrations, which that
// role then applies; the others after them, and again after each new migration:
//
//	text, err := schema.Grants(schema.Worker, "durable", "shop_worker")
//
// Grants to several roles add up. An unknown role, and a name that is empty or holds a NUL byte,
// are refused.
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
		"durable_"+string(role), quoted(grantee),
		"SCHEMA durable", "SCHEMA "+quoted(schema),
		"durable.", quoted(schema)+".",
	).Replace(string(text)), nil
}

// quoted is a name as an identifier of SQL.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
