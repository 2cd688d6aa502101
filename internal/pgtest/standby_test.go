package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// pair is a primary with a standby that follows it.
func pair(t *testing.T) (primary, standby *Server) {
	t.Helper()
	primary, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := primary.Close(); err != nil {
			t.Error(err)
		}
	})
	if standby, err = primary.Standby(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Close(); err != nil {
			t.Error(err)
		}
	})
	return primary, standby
}

func TestStandbyFollowsAndIsPromoted(t *testing.T) {
	t.Parallel()
	primary, standby := pair(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := primary.RequireSynchronous(ctx, "second"); err != nil {
		t.Fatal(err)
	}
	query(t, primary.URL(), "CREATE TABLE here AS SELECT 1 AS n")
	if err := standby.Stop(Fast); err != nil {
		t.Fatal(err)
	}
	short, end := context.WithTimeout(ctx, 300*time.Millisecond)
	defer end()
	if _, err := queryText(short, primary.URL(), "INSERT INTO here VALUES (2)"); err == nil {
		t.Error("a commit did not wait for the synchronous standby, which is away")
	}
	if err := standby.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	query(t, primary.URL(), "INSERT INTO here VALUES (3)")
	if err := primary.WaitUntilCaughtUp(ctx, "second"); err != nil {
		t.Fatal(err)
	}
	if err := primary.Kill9(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(ctx); err != nil {
		t.Fatal(err)
	}
	if got := query(t, standby.URL(), "SELECT count(*)::text FROM here WHERE n <> 2"); got != "2" {
		t.Errorf("the promoted standby has %s of 2 rows", got)
	}
	query(t, standby.URL(), "INSERT INTO here VALUES (4)")
}

func TestFormerPrimaryFollows(t *testing.T) {
	t.Parallel()
	primary, standby := pair(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := primary.Follow(ctx, standby, "first"); err == nil {
		t.Error("the data of a running server were replaced")
	}
	query(t, primary.URL(), "CREATE TABLE here AS SELECT 1 AS n")
	hosts, url := Sockets(primary, standby), primary.URL()
	for range 2 { // there and back
		if err := primary.WaitUntilCaughtUp(ctx, standby.name); err != nil {
			t.Fatal(err)
		}
		if err := primary.Kill9(); err != nil {
			t.Fatal(err)
		}
		if err := standby.Promote(ctx); err != nil {
			t.Fatal(err)
		}
		if err := primary.Follow(ctx, standby, "former"); err != nil {
			t.Fatal(err)
		}
		primary, standby = standby, primary
		if err := primary.RequireSynchronous(ctx, "former"); err != nil {
			t.Fatal(err)
		}
		query(t, hosts, "INSERT INTO here VALUES (2)") // the URL leads to the new primary
	}
	if primary.URL() != url {
		t.Errorf("the address has changed from %s to %s", url, primary.URL())
	}
	if got := query(t, hosts, "SELECT count(*)::text FROM here"); got != "3" {
		t.Errorf("%s of 3 rows are left after two promotions", got)
	}
}

func TestAFrozenServerRepliesToNobody(t *testing.T) {
	t.Parallel()
	primary, standby := pair(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, primary.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := primary.Freeze(); err != nil {
		t.Fatal(err)
	}
	short, end := context.WithTimeout(ctx, 300*time.Millisecond)
	defer end()
	if _, err := queryText(short, primary.TCP(), "SELECT 1"); err == nil || short.Err() == nil {
		t.Errorf("a frozen server was connected to: %v", err)
	}
	if err := standby.Promote(ctx); err != nil {
		t.Fatal(err)
	}
	if err := primary.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := conn.Ping(ctx); err != nil {
		t.Errorf("the connection from before is gone: %v", err)
	}
	var where string
	several, err := pgx.Connect(ctx, Hosts(standby, primary))
	if err != nil {
		t.Fatal(err)
	}
	defer several.Close(context.WithoutCancel(ctx))
	if err := several.QueryRow(ctx, "SELECT current_setting('port')").Scan(&where); err != nil || where == "" {
		t.Error(where, err)
	}
}
