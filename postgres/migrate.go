package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/schema"
)

// minServerVersion is the first server version that has everything that the schema needs: UNIQUE NULLS NOT
// DISTINCT.
const minServerVersion = 150000

// prepareSchema migrates the schema to the version of this code. Without migrate it only checks the version.
func (s *database) prepareSchema(ctx context.Context, migrate bool) error {
	all := schema.Postgres()
	s.probeWriterLockSupport(ctx)
	s.probeLogPosition(ctx)
	have, err := s.schemaVersion(ctx)
	if err != nil {
		return err
	}
	if !migrate {
		return s.addSchemaNameToVersionError(schema.Check(have, all))
	}
	if pending, err := schema.Pending(have, all); err != nil || len(pending) == 0 {
		return s.addSchemaNameToVersionError(err) // the usual start takes no lock
	}
	if err := s.migrateSchema(ctx, all); err != nil {
		return err
	}
	_, err = s.schemaVersion(ctx) // on Citus, this finds the home of the new schema
	return err
}

// schemaVersion returns the version of the schema, without locks. It is zero if there is no schema.
func (s *database) schemaVersion(ctx context.Context) (int, error) {
	// Owners are checked first: a schema that a stranger owns may be invisible to this role.
	if err := s.checkSchemaOwners(s.roundTripFuncOnEnginePool(ctx)); err != nil {
		return 0, err
	}
	server, encoding, recorded, onCitus := 0, "", false, false
	err := s.runBatch(ctx, s.enginePool, "look at the schema", func(batch *pgx.Batch) {
		batch.Queue(s.statements.migrationPreconditions, s.schema, s.tableName("migration"))
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&server, &encoding, nil, &recorded, &onCitus) })
	})
	if err != nil {
		return 0, err
	}
	s.onCitus = onCitus
	if server < minServerVersion {
		return 0, fmt.Errorf("postgres: the server is PostgreSQL %d.%d, durable needs 15 or newer: upgrade the server", server/10000, server%10000)
	}
	if encoding != "UTF8" && encoding != "SQL_ASCII" { // SQL_ASCII converts nothing
		return 0, fmt.Errorf("postgres: %w: the database keeps text in the encoding %s, and names must be kept byte for byte: create another one with TEMPLATE template0 ENCODING 'UTF8'", durable.ErrInvalidConfig, encoding)
	}
	if !recorded {
		return 0, nil
	}
	if onCitus {
		if err := s.findHomeNode(ctx); err != nil {
			return 0, err
		}
	}
	have := 0
	err = s.runBatch(ctx, s.enginePool, "read the schema's version", func(batch *pgx.Batch) { batch.Queue(s.statements.migrationVersion) },
		func(res statementResults) error {
			return eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&have) })
		})
	return have, err
}

// maxMigrationTries is how often a migration is tried where several processes cannot take turns.
const maxMigrationTries = 5

// migrateSchema applies the missing migrations in one transaction. If several processes call it, one of them
// applies the migrations, and the others find them applied. A lock lets one process begin at a time. Where the lock does not work,
// all begin, one commits, and the others, which fail because the tables exist, begin again.
func (s *database) migrateSchema(ctx context.Context, all []schema.Migration) error {
	for try := 1; ; try++ {
		err := s.migrateOnce(ctx, all)
		if !hasSQLState(err, "23505", "42P06", "42P07", "42710") || try == maxMigrationTries {
			return err
		}
	}
}

func (s *database) migrateOnce(ctx context.Context, all []schema.Migration) error {
	conn, err := s.enginePool.Acquire(ctx)
	if err != nil {
		return s.wrapError(ctx, "migrate", err)
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	if err != nil {
		return s.wrapError(ctx, "migrate", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // after a commit there is nothing to undo
	if err := s.applyMigrations(ctx, conn.Conn(), tx, all); err != nil {
		if stranger := new(UntrustedOwnerError); errors.As(err, &stranger) {
			return err
		}
		if hasSQLState(err, "42501") {
			return fmt.Errorf("postgres: migrate schema %q: %w: grant the role CREATE on the database, or have a DBA apply the migrations and open the store with WithoutMigrations", s.schema, err)
		}
		return s.wrapError(ctx, fmt.Sprintf("migrate schema %q", s.schema), err)
	}
	return s.wrapError(ctx, "migrate", tx.Commit(ctx))
}

func (s *database) applyMigrations(ctx context.Context, conn *pgx.Conn, tx pgx.Tx, all []schema.Migration) error {
	ask := s.roundTripFuncInTx(ctx, tx)
	if connStateOf(conn) == nil { // the search_path must be set before any CREATE, because a new view keeps the present meaning of its names
		if err := ask("migrate", s.addEngineSettings, func(res statementResults) error { return readRowCount(res, 1, nil) }); err != nil {
			return err
		}
	}
	// The lock may be held by another migrator; ctx bounds the wait. The setting ends with the
	// transaction.
	if _, err := tx.Exec(ctx, s.statements.migrationNoTimeouts); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, s.statements.migrationLock, s.schema); err != nil {
		return err
	}
	if err := s.checkSchemaOwners(ask); err != nil { // check again, because from now on no other process can create the schema
		return err
	}
	var exists, recorded, onCitus bool
	have := 0
	if err := tx.QueryRow(ctx, s.statements.migrationPreconditions, s.schema, s.tableName("migration")).Scan(nil, nil, &exists, &recorded, &onCitus); err != nil {
		return err
	}
	if recorded {
		if err := tx.QueryRow(ctx, s.statements.migrationVersion).Scan(&have); err != nil {
			return err
		}
	}
	pending, err := schema.Pending(have, all)
	if err != nil {
		return s.addSchemaNameToVersionError(err)
	}
	for _, m := range pending {
		text := m.SQL
		if exists {
			text = strings.Replace(text, "CREATE SCHEMA durable;", "", 1)
		}
		parts := []string{text}
		if onCitus {
			parts = splitStatements(text)
		}
		for _, part := range parts {
			if _, err := tx.Conn().PgConn().Exec(ctx, replaceSchemaName(part, s.schema)).ReadAll(); err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
		}
		exists = true
	}
	return tx.QueryRow(ctx, s.statements.migrationVersion).Scan(&have)
}

// addSchemaNameToVersionError adds the name of the schema to an error about its version.
func (s *database) addSchemaNameToVersionError(err error) error {
	if err == nil || !errors.Is(err, store.ErrSchema) {
		return err
	}
	return fmt.Errorf("postgres: schema %q: %w", s.schema, err)
}

func (s *database) tableName(name string) string { return pgx.Identifier{s.schema, name}.Sanitize() }
