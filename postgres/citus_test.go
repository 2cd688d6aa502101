package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/store/storetest"
	"github.com/seed8ec063be/durable/internal/testsize"
)

// fakeCitus creates what the store reads of a Citus's catalog. $1 of its placement is the group of this node.
const fakeCitus = `
SET allow_system_table_mods = on;
CREATE FUNCTION pg_catalog.citus_version() RETURNS text LANGUAGE sql AS $$ SELECT 'none' $$;
CREATE TABLE pg_catalog.pg_dist_local_group (groupid integer);
CREATE TABLE pg_catalog.pg_dist_node (groupid integer, nodename text, nodeport integer, noderole text);
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass, partmethod "char");
CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid regclass, shardid bigint);
CREATE TABLE pg_catalog.pg_dist_placement (shardid bigint, groupid integer, shardstate integer);
GRANT SELECT ON pg_catalog.pg_dist_local_group, pg_catalog.pg_dist_node, pg_catalog.pg_dist_partition, pg_catalog.pg_dist_shard, pg_catalog.pg_dist_placement TO PUBLIC;
INSERT INTO pg_dist_local_group VALUES (1);`

// keepOnNode tells the fake that the schema durable lies on the node of a group.
const keepOnNode = `
DELETE FROM pg_dist_partition; DELETE FROM pg_dist_shard; DELETE FROM pg_dist_placement; DELETE FROM pg_dist_node;
INSERT INTO pg_dist_partition VALUES ('durable.run', 'n');
INSERT INTO pg_dist_shard VALUES ('durable.run', 7);
INSERT INTO pg_dist_placement VALUES (7, %d, 1);
INSERT INTO pg_dist_node VALUES (%[1]d, %s, %d, 'primary');`

// addressIn returns the address of the server of a URL.
func addressIn(t testing.TB, at string) nodeAddress {
	t.Helper()
	cfg, err := pgx.ParseConfig(at)
	if err != nil {
		t.Fatal(err)
	}
	return nodeAddress{cfg.Host, cfg.Port}
}

// exec executes statements in the database at a URL.
func execAt(t testing.TB, at string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) //nolint:errcheck // nothing is left to do
	for _, text := range statements {
		if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// placed is keepOnNode with values.
func placed(group int, node nodeAddress) string {
	return "SET allow_system_table_mods = on;" + fmt.Sprintf(keepOnNode, group, "'"+node.host+"'", node.port)
}

// closedPort is the address of a node that cannot be reached.
var closedPort = nodeAddress{"127.0.0.1", 1}

// At the home of the schema nothing is taken away; pipelines have BEGIN and COMMIT, and plans are made for the values.
func TestCitusAtHome(t *testing.T) {
	at := migratedURL(t)
	execAt(t, at, fakeCitus, placed(1, addressIn(t, at)))
	s := openAt(t, at)
	var mode string
	err := s.runBatch(t.Context(), s.enginePool, "look", func(batch *pgx.Batch) {
		batch.Queue("SAVEPOINT a") // refused in a pipeline without BEGIN
		batch.Queue("SELECT current_setting('plan_cache_mode')")
	}, func(res statementResults) error {
		if _, err := res.Exec(); err != nil {
			return err
		}
		return eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&mode) })
	})
	if err != nil || mode != "auto" {
		t.Errorf("plans are made with %q, %v", mode, err)
	}
	begin(t, s, &store.StartWrite{Run: pending(now(t, s))})
	if n := len(claimAll(t, s)); n != 1 {
		t.Errorf("%d runs were claimed", n)
	}
	beat(t, s, uuid.New())
}

func claimAll(t testing.TB, s *database) []store.ClaimedRun {
	t.Helper()
	claims, err := s.Claim(t.Context(), claimQuery(t, s))
	if err != nil {
		t.Fatal(err)
	}
	return claims.Runs
}

func claimQuery(t testing.TB, s *database) store.ClaimQuery {
	t.Helper()
	return store.ClaimQuery{Worker: uuid.New(), Filter: flow, Limit: 10, Now: now(t, s), LeaseUntil: now(t, s).Add(time.Minute), MaxCrashes: 5}
}

// Through another node than the home, which cannot be reached, runs are started but not claimed, and nobody seems dead.
func TestCitusAwayFromHome(t *testing.T) {
	at := migratedURL(t)
	execAt(t, at, fakeCitus, placed(2, closedPort))
	s := openAt(t, at)
	begin(t, s, &store.StartWrite{Run: pending(now(t, s))})
	if _, err := s.Claim(t.Context(), claimQuery(t, s)); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, errNotAtHome) {
		t.Errorf("a claim: %v", err)
	}
	worker := uuid.New()
	beat(t, s, worker)
	execAt(t, at, "UPDATE durable.worker SET attended_at = now(), server_started_at = pg_postmaster_start_time()") // its lock is on the home
	if dead(t, s, uuid.New(), worker) {
		t.Error("the worker seems dead")
	}
	err := s.listenUntilFailure(t.Context(), worker, func(h store.WakeHint) { t.Errorf("hint %d", h) })
	if !errors.Is(err, errNotAtHome) {
		t.Errorf("listening: %v", err)
	}
	began := time.Now()
	if err := s.awaitStepWriters(t.Context()); err != nil || time.Since(began) < 150*time.Millisecond {
		t.Errorf("a takeover waited for %v, %v", time.Since(began), err)
	}
}

// The store's connections lead to the home of the schema, and follow it when Citus moves it.
func TestCitusHomeIsFollowed(t *testing.T) {
	at := migratedURL(t)
	other, err := pgtest.Start(t.Context(), pgtest.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	from, to := addressIn(t, at), addressIn(t, other.URL())
	name := databaseIn(t, at)
	execAt(t, other.URL(), "CREATE DATABASE "+name)
	there := fmt.Sprintf("postgres://postgres@/%s?%s", name, url.Values{"host": {to.host}, "port": {strconv.Itoa(int(to.port))}}.Encode())
	migrated, err := openDatabase(t.Context(), there)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrated.Close(); err != nil {
		t.Fatal(err)
	}
	execAt(t, there, fakeCitus, "SET allow_system_table_mods = on; UPDATE pg_dist_local_group SET groupid = 2", placed(2, to))
	execAt(t, at, fakeCitus, placed(2, to))

	s := openAt(t, at)
	if got := serverPort(t, s); got != to.port {
		t.Errorf("the connections lead to %d, not to the home %d", got, to.port)
	}
	execAt(t, at, placed(1, from))
	execAt(t, there, placed(1, from))
	beat(t, s, uuid.New())
	if got := serverPort(t, s); got != from.port {
		t.Errorf("the connections lead to %d, and the schema has moved to %d", got, from.port)
	}
	// A move that no heartbeat has seen is seen by the claim.
	execAt(t, at, placed(2, to))
	execAt(t, there, placed(2, to))
	if _, err := s.Claim(t.Context(), claimQuery(t, s)); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the claim at the former home: %v", err)
	}
	if claimAll(t, s); serverPort(t, s) != to.port {
		t.Error("the next claim was not at the home")
	}
	if told := heartbeat(t, s); len(told) > 0 || s.rewindDetector.rewindCount.Load() > 0 {
		t.Errorf("the move is taken for a rewind of the database: %+v", told)
	}
	// The pool for Tx steps follows too, also that of a further schema.
	tenant, err := s.openSchema(t.Context(), DefaultSchema)
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	for _, s := range []*database{s, tenant} {
		conn, err := s.acquireUserConn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var port string
		if err := conn.QueryRow(t.Context(), "SELECT current_setting('port')").Scan(&port); err != nil || port != strconv.Itoa(int(to.port)) {
			t.Errorf("Tx steps are executed at %s, not at the home %d; %v", port, to.port, err)
		}
		conn.Release()
	}
}

func databaseIn(t testing.TB, at string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(at)
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Database
}

func serverPort(t testing.TB, s *database) (port uint16) {
	t.Helper()
	err := s.enginePool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
		var text string
		err := conn.QueryRow(t.Context(), "SELECT current_setting('port')").Scan(&text)
		n, _ := strconv.Atoi(text)
		port = uint16(n)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Tables that are distributed by a column are refused, and undistributed ones are as on PostgreSQL.
func TestCitusLayouts(t *testing.T) {
	at := migratedURL(t)
	execAt(t, at, fakeCitus)
	s := openAt(t, at)
	if s.citus.isSchemaDistributed() {
		t.Error("undistributed tables seem sharded")
	}
	execAt(t, at, placed(1, closedPort), "SET allow_system_table_mods = on; UPDATE pg_dist_partition SET partmethod = 'h'")
	if _, err := openDatabase(t.Context(), at); !errors.Is(err, durable.ErrInvalidConfig) {
		t.Errorf("tables that are distributed by a column: %v", err)
	}
}

// Citus executes the statements of a migration one by one.
func TestCitusMigration(t *testing.T) {
	at := pgtest.URL(t)
	execAt(t, at, fakeCitus)
	s := openAt(t, at)
	begin(t, s, &store.StartWrite{Run: pending(now(t, s))})
}

func TestSplitStatements(t *testing.T) {
	got := splitStatements("-- a; b\nSELECT ';', \"x;y\"; -- c;\nCREATE FUNCTION f() AS $$ a; b $$;\n;\nSELECT 1")
	want := []string{"-- a; b\nSELECT ';', \"x;y\"", "-- c;\nCREATE FUNCTION f() AS $$ a; b $$", "SELECT 1"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// The suite passes at home with framed pipelines.
func TestConformanceOnCitus(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		h := fnv.New32a()
		if _, _ = io.WriteString(h, t.Name()); h.Sum32()%10 != 0 && !testsize.IsFull() {
			t.Skipf("one test of ten, unless %s=all", testsize.Variable)
		}
		reserve(t)
		at := migratedURL(t)
		execAt(t, at, fakeCitus, placed(1, addressIn(t, at)))
		return openAt(t, at)
	})
}
