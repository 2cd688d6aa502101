package faults

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
)

// Row 57: a repair is made at once while a checkpoint is under way: its statement has seen the run as it was before the repair, and
// commits only afterwards. The repair waits for it. So the old generation has the checkpoint, and the step, which had completed, is
// executed again with another idempotency key. SQLite has one writer at a time, so nothing is under way there.
func TestRow57_ACheckpointUnderWayDuringARepair(t *testing.T) {
	db := database{Kind: "postgres", Where: pgtest.ServerURL(t), Schema: pgtest.Schema(t)}
	l := newLedger(t)
	w := mended(l, new(atomic.Bool))
	e := engineOn(t, db.openIn(t), durable.Config{Poll: 20 * time.Millisecond}, w)
	defer runEngine(t, e)()

	conn, err := pgx.Connect(bounded(t), db.Where)
	must(t, "connect", err)
	defer conn.Close(context.Background())
	schema := pgx.Identifier{db.Schema}.Sanitize()
	for _, statement := range []string{
		"CREATE TABLE " + schema + ".hold ()",
		"INSERT INTO " + schema + ".hold DEFAULT VALUES",
		`CREATE FUNCTION ` + schema + `.wait() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	WHILE EXISTS (SELECT FROM ` + schema + `.hold) LOOP
		PERFORM pg_sleep(0.005);
	END LOOP;
	RETURN NEW;
END $$`,
		"CREATE TRIGGER wait BEFORE INSERT ON " + schema + ".step FOR EACH ROW WHEN (NEW.name = 'b') EXECUTE FUNCTION " + schema + ".wait()",
	} {
		_, err := conn.Exec(bounded(t), statement)
		must(t, statement, err)
	}
	count := func(what, query string) int {
		n := 0
		must(t, what, conn.QueryRow(bounded(t), query).Scan(&n))
		return n
	}

	start(t, e, w, false, durable.ID("one"))
	await(t, "the checkpoint of b to be under way", func() bool {
		return count("activity", "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()") > 0
	})
	client := engineOn(t, db.openIn(t), durable.Config{})
	repaired := make(chan error, 1)
	go func() {
		_, err := client.Override(bounded(t), "one", "a", 7, durable.InterruptSteps())
		repaired <- err
	}()
	await(t, "the fence of the repair", func() bool {
		return count("the owner", "SELECT count(*) FROM "+schema+".run WHERE owner IS NULL") == 1
	})
	select {
	case err := <-repaired:
		t.Fatalf("the repair returned %v while a checkpoint was under way", err)
	default:
	}
	if generations, err := client.Generations(bounded(t), "one"); err != nil || len(generations) != 1 {
		t.Errorf("while a checkpoint is under way there are %d generations, %v", len(generations), err)
	}
	_, err = conn.Exec(bounded(t), "DELETE FROM "+schema+".hold")
	must(t, "release", err)
	must(t, "the repair", receive(t, repaired, "the repair"))

	if sum, err := result(t, client, w, "one"); err != nil || sum != 72 {
		t.Errorf("the run returned %d, %v", sum, err)
	}
	old, err := client.History(bounded(t), "one", durable.InGeneration(1))
	must(t, "the old history", err)
	recorded := false
	for _, c := range old {
		recorded = recorded || c.Name == "b" && c.Status == durable.CheckpointCompleted
	}
	if !recorded {
		t.Errorf("the checkpoint that was under way is not in the old generation: %+v", old)
	}
	// The worker of the old generation may call c before its next write is fenced. That call was interrupted, so its key is used again.
	a, b, c := l.of(t, "", "a"), l.of(t, "", "b"), l.of(t, "", "c")
	if len(a) != 1 || len(b) != 2 || b[0].Key == b[1].Key || len(c) > 2 || c[0].Key != c[len(c)-1].Key {
		t.Errorf("a must be called once, b twice with two keys, and c with one key; the ledger has %+v", l.read(t))
	}
}
