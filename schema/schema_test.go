package schema_test

import (
	"testing"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/schema"
)

// Workers record the version of the schema that they were written for, so it must be the number of the migrations.
func TestSchemaVersionIsTheNumberOfMigrations(t *testing.T) {
	if p, s := len(schema.Postgres()), len(schema.SQLite()); p != store.SchemaVersion || s != store.SchemaVersion {
		t.Errorf("%d migrations for PostgreSQL and %d for SQLite, but store.SchemaVersion is %d", p, s, store.SchemaVersion)
	}
}
