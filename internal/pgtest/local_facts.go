package pgtest

import (
	"context"
	"errors"
	"os"
	"testing"
)

// NoLocalFacts is the environment variable that takes away what one node of a distributed PostgreSQL does not know of the others, if it
// is not empty: advisory locks are always free, notifications do not arrive, and pg_locks is empty. That holds in every database of the
// server that this package starts for a test binary, and not on the servers of Start.
const NoLocalFacts = "DURABLE_TEST_NO_LOCAL_FACTS"

// NeedLocalFacts skips a test of advisory locks, notifications or pg_locks if NoLocalFacts takes them away.
func NeedLocalFacts(t testing.TB) {
	t.Helper()
	if os.Getenv(NoLocalFacts) != "" {
		t.Skipf("%s is set, and this test needs advisory locks, notifications or pg_locks", NoLocalFacts)
	}
}

// plainTemplate is the database that new databases are copied from. It is not template1, which another test's CREATE DATABASE may use.
const plainTemplate = "template0"

// bareTemplate is that database if there are no local facts.
const bareTemplate = "pgtest_no_local_facts"

// templateDatabase returns the name of the database that new databases are copied from.
func templateDatabase() string {
	if os.Getenv(NoLocalFacts) != "" {
		return bareTemplate
	}
	return plainTemplate
}

// removeLocalFacts takes the local facts away in the server's maintenance database, and creates bareTemplate.
func removeLocalFacts(ctx context.Context, server string) error {
	bare, err := withDatabase(server, bareTemplate)
	if err != nil {
		return err
	}
	return errors.Join(
		execute(ctx, server, "CREATE DATABASE "+bareTemplate+" TEMPLATE "+plainTemplate),
		execute(ctx, bare, removeFacts),
		execute(ctx, server, removeFacts),
	)
}

// RemoveLocalFacts does in the database at url what NoLocalFacts does in all.
func RemoveLocalFacts(t testing.TB, url string) {
	t.Helper()
	if os.Getenv(NoLocalFacts) != "" {
		return // they are gone
	}
	if err := execute(t.Context(), url, removeFacts); err != nil {
		t.Fatal(err)
	}
}

// removeFacts renames the functions. The server calls a function of its own by its number, so new text for the same function would
// have no effect.
const removeFacts = `
SET allow_system_table_mods = on;
DO $do$
DECLARE f record;
BEGIN
    FOR f IN SELECT p.oid::regprocedure AS signature, p.proname AS name,
                    pg_get_function_identity_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result
             FROM pg_proc AS p
             WHERE p.pronamespace = 'pg_catalog'::regnamespace AND (p.proname LIKE 'pg\_%advisory%' OR p.proname = 'pg_notify')
    LOOP
        EXECUTE format('ALTER FUNCTION %s RENAME TO %I', f.signature, 'real_' || f.name);
        EXECUTE format('CREATE FUNCTION pg_catalog.%I(%s) RETURNS %s LANGUAGE sql AS %L', f.name, f.arguments, f.result,
            CASE f.result WHEN 'boolean' THEN 'SELECT true' ELSE 'SELECT' END);
    END LOOP;
    EXECUTE 'CREATE OR REPLACE VIEW pg_catalog.pg_locks AS ' || rtrim(pg_get_viewdef('pg_catalog.pg_locks'), '; ') || ' WHERE false';
END
$do$`
