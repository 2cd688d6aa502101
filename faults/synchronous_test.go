package faults

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
)

// Row 37: the synchronous standby is away for longer than a flush and a lease may take, then the primary is
// killed and the standby promoted. Nothing was acknowledged that the standby does not have; work
// goes on by itself.
func TestRow37_SynchronousStandbyAway(t *testing.T) { // not beside others: leases of seconds must hold
	const runs, steps = 6, 45
	primary := ownServer(t)
	standby := standbyOf(t, primary, "second")
	must(t, "wait for the standby", primary.RequireSynchronous(bounded(t), "second"))
	db := database{Kind: "postgres", Where: pgtest.Hosts(primary, standby), Schema: "s"}
	l, logged := newLedger(t), &journalled{}
	w := drawn("drawn", l, steps, 5*time.Millisecond)
	// It has a flush under way when all others are in transactions, however long the standby takes to stop.
	gate := gates{2 * steps: filepath.Join(t.TempDir(), "stopped")}
	plain := drawnOf("plain", l, 4*steps, 5*time.Millisecond, 0, gate)
	e := engineOn(t, db.openIn(t), durable.Config{Lease: 1500 * time.Millisecond, Logger: logged.logger()}, w, plain)
	client := engineOn(t, db.openIn(t), durable.Config{Patience: 5 * time.Second}) // writes while the flushes of e wait
	runEngine(t, e)
	start(t, e, plain, 0, durable.ID("plain"))
	for i := range runs {
		start(t, e, w, i, durable.ID(fmt.Sprint("r", i)))
	}
	await(t, "steps", func() bool { return acknowledged(t, l) > 4*runs })

	must(t, "stop the standby", standby.Stop(pgtest.Fast))
	gate.open(t, 2*steps)
	repeat := func() error { // a start that the standby lacks, whatever it got of the steps before it stopped
		_, err := w.Start(bounded(t), client, runs, durable.ID(fmt.Sprint("r", runs)))
		return err
	}
	if repeat() == nil {
		t.Error("a start was acknowledged while the standby was away")
	}
	look := session(t, primary.URL())
	await(t, "commits to wait", func() bool {
		return sql(t, look, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")[0][0].(int64) > 0
	})
	still := acknowledged(t, l)
	const count = "SELECT (SELECT count(*) FROM s.step WHERE status >= 3), (SELECT count(*) FROM s.run)"
	// Flushes are cancelled after 1, 2, 4 seconds, with what they wrote visible.
	began := time.Now()
	await(t, "flushes to be made again", func() bool {
		visible := sql(t, look, count)[0]
		if visible[1].(int64) < runs+2 && repeat() == nil { // on a loaded machine it may be cancelled before it writes
			t.Error("a start was acknowledged while the standby was away")
		}
		return time.Since(began) > 4500*time.Millisecond && visible[0].(int64) > int64(acknowledged(t, l)) && visible[1].(int64) == runs+2
	})
	if now := acknowledged(t, l); now > still {
		t.Errorf("%d steps were acknowledged while the standby was away", now-still)
	}
	alone := sql(t, look, count)[0]
	must(t, "kill the primary", primary.Kill9())
	must(t, "start the standby", standby.Restart(bounded(t)))
	must(t, "promote", standby.Promote(bounded(t)))
	promoted := time.Now()
	kept := sql(t, session(t, standby.URL()), count)[0]
	if kept[1].(int64) != runs+1 {
		t.Errorf("the primary had %d checkpoints and runs, the standby %d: nothing was written that nobody had waited for", alone, kept)
	}
	must(t, "repeat the start", repeat())
	for i := range runs + 1 {
		id := fmt.Sprint("r", i)
		if _, err := result(t, e, w, id); err != nil {
			t.Error(err)
			continue
		}
		oneHistory(t, e, id, steps)
		if at := info(t, e, id); at.Crashes > 0 {
			t.Errorf("run %s counts %d crashes, and no process has died: %s", id, at.Crashes, at.Reason)
		}
	}
	if _, err := result(t, e, plain, "plain"); err != nil {
		t.Error(err)
	}
	oneHistory(t, e, "plain", 4*steps)
	took := time.Since(promoted)
	values := make(map[string]string)
	for _, x := range l.read(t) {
		if !strings.HasPrefix(x.Step, "ack ") {
			continue
		}
		if before, again := values[x.Run+x.Step]; again && before != x.Key {
			t.Errorf("%s of run %s was acknowledged as %q, and then as %q", x.Step, x.Run, before, x.Key)
		}
		values[x.Run+x.Step] = x.Key
	}
	if lost := logged.with("lacks"); len(lost) > 0 {
		t.Errorf("what was acknowledged was lost: %q", lost)
	}
	t.Logf("acknowledged=%d alone=%d kept=%d ended_after=%v", len(values), alone, kept, took.Round(time.Millisecond))
}
