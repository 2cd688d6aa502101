package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
)

// instant is a workflow that ends at once.
var instant = durable.Define("instant", func(*durable.Ctx, int) (int, error) { return 1, nil })

// cursorOfEnd executes a run of instant, and returns the cursor of its end.
func cursorOfEnd(t testing.TB, e *durable.Engine, id string) (cursor string) {
	t.Helper()
	if _, err := start(t, e, instant, 0, durable.ID(id)).Result(bounded(t)); err != nil {
		t.Fatal(err)
	}
	await(t, "the event of the run "+id, func() bool { // open transactions delay it
		events, err := e.LatestEvents(bounded(t), durable.Page{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(events, func(x durable.Event) bool { return x.ID == id && x.Type == durable.EventCompleted })
		if i >= 0 {
			cursor = events[i].Cursor
		}
		return i >= 0
	})
	return cursor
}

// cursorsAfterRewind asserts that the cursor of a kept event is still valid, and that of a lost one is refused.
func cursorsAfterRewind(t testing.TB, e *durable.Engine, kept, lost string) {
	t.Helper()
	read := func(cursor string) (err error) {
		within(patience, func() bool {
			_, err = e.Events(bounded(t), durable.Page{Cursor: cursor})
			return !errors.Is(err, durable.ErrUnavailable)
		})
		return err
	}
	if err := read(kept); err != nil {
		t.Errorf("the cursor of an event that is kept: %v", err)
	}
	if err := read(lost); !errors.Is(err, durable.ErrInvalidCursor) {
		t.Errorf("the cursor of an event that is lost: %v, want ErrInvalidCursor", err)
	}
}

// renewing is drawn, but continues as new after each portion of its steps. It returns what all of them did.
func renewing(name string, l ledger, steps, portion int, pace time.Duration, g gates) *durable.Workflow[[]string, []string] {
	return durable.Define(name, func(c *durable.Ctx, all []string) ([]string, error) {
		for i := len(all); i < steps; i++ {
			v, err := c.Step(fmt.Sprintf("s%03d", i), func(ctx context.Context) (string, error) { return draw(ctx, l, c.ID(), i, pace, g) })
			if err != nil {
				return nil, err
			}
			l.add(Entry{Run: c.ID(), Step: fmt.Sprintf("ack s%03d", i), Key: v})
			if all = append(all, v); len(all)%portion == 0 && len(all) < steps {
				return nil, c.ContinueAsNew(all)
			}
		}
		return all, nil
	})
}

// oneHistoryOfAll is oneHistory for a run of renewing.
func oneHistoryOfAll(t testing.TB, e *durable.Engine, id string, steps, portion int) {
	t.Helper()
	var out []string
	at := info(t, e, id)
	if err := json.Unmarshal(at.Output, &out); err != nil || len(out) != steps {
		t.Errorf("run %s is %s with %d values: %v", id, at.Status, len(out), err)
		return
	}
	for from := 0; from < steps; from += portion {
		rows, err := e.History(bounded(t), id, durable.InGeneration(from/portion+1))
		if err != nil {
			t.Fatal(err)
		}
		recorded := make(map[string]string)
		for _, c := range rows {
			recorded[c.Name] = string(c.Output)
		}
		for i := from; i < from+portion; i++ {
			if name := fmt.Sprintf("s%03d", i); recorded[name] != `"`+out[i]+`"` {
				t.Errorf("run %s has returned %q for %s, whose checkpoint holds %s", id, out[i], name, recorded[name])
			}
		}
	}
}

// Row 38: a database is restored to an earlier state, on the same timeline, while two workers hold its runs: some of
// these continue as new, within what is lost or before it. Both workers notice, once, and say what is lost; no run mixes
// two histories, and all end; a cursor of what is gone is refused.
func TestRow38_RestoredUnderLiveWorkers(t *testing.T) {
	t.Parallel()
	const runs, steps, mark = 4, 60, 21
	server := ownServer(t)
	db := database{Kind: "postgres", Where: server.URL(), Schema: "s"}
	l := newLedger(t)
	file := filepath.Join(t.TempDir(), "server")
	// No run writes its step 21 before the snapshot, and none goes far past it before the restore. The steps before the second gate are
	// in the same generation as step 21 in long, and in later ones in short.
	g := gates{mark: file + ".saved", 37: file + ".restored"}
	plain := drawnOf("plain", l, steps, 5*time.Millisecond, 3, g)
	long, short := renewing("long", l, steps, 20, 5*time.Millisecond, g), renewing("short", l, steps, 10, 5*time.Millisecond, g)
	var engines []*durable.Engine
	var logs []*journalled
	for i := range 2 {
		logged := &journalled{}
		e := engineOn(t, db.openIn(t), durable.Config{Lease: 12 * time.Second, Logger: logged.logger()}, plain, long, short, instant)
		defer runEngine(t, e)()
		for j := range runs {
			start(t, e, plain, j, durable.ID(fmt.Sprint("plain", i, j)))
		}
		start(t, e, long, nil, durable.ID(fmt.Sprint("long", i)))
		start(t, e, short, nil, durable.ID(fmt.Sprint("short", i)))
		engines, logs = append(engines, e), append(logs, logged)
	}
	e := engines[0]
	const all = 2 * (runs + 2)
	ids := make(map[string]bool)
	await(t, "all that is to be kept", func() bool { return acknowledgedByAll(t, l, all, mark) })
	for _, x := range l.read(t) {
		ids[x.Run] = true
	}
	kept := cursorOfEnd(t, e, "kept")
	must(t, "stop the server", server.Stop(pgtest.Fast))
	must(t, "copy its data", server.Snapshot(bounded(t)))
	must(t, "start it", server.Restart(bounded(t)))
	g.open(t, mark)
	await(t, "steps of all that will be lost", func() bool { return acknowledgedByAll(t, l, all, 37) })
	lost := cursorOfEnd(t, e, "lost")
	renewed := make(map[string]time.Time) // a heartbeat reads the position of the database, too
	for id := range ids {
		renewed[id] = info(t, e, id).WakeAt
	}
	await(t, "a heartbeat of both workers", func() bool {
		for id, before := range renewed {
			if info(t, e, id).WakeAt.After(before) {
				delete(renewed, id)
			}
		}
		return len(renewed) == 0
	})
	for i, logged := range logs {
		if told := logged.with("goes on from another point of its history"); len(told) != 0 {
			t.Fatalf("worker %d told of a rewind before there was one: %q", i, told)
		}
	}

	must(t, "stop the server", server.Stop(pgtest.Fast))
	must(t, "put the copy back", server.Restore(bounded(t)))
	must(t, "close a gate", os.Remove(g[mark])) // what is written anew would bring the database past where it was
	must(t, "start it", server.Restart(bounded(t)))
	for _, logged := range logs {
		await(t, "a worker to tell of the restore", func() bool { return len(logged.with("goes on from another point of its history")) > 0 })
	}
	g.open(t, mark)
	g.open(t, 37)
	for id := range ids {
		await(t, "the end of "+id, func() bool { return !info(t, e, id).EndedAt.IsZero() })
	}
	for i := range engines {
		for j := range runs {
			oneHistory(t, e, fmt.Sprint("plain", i, j), steps)
		}
		oneHistoryOfAll(t, e, fmt.Sprint("long", i), steps, 20)
		oneHistoryOfAll(t, e, fmt.Sprint("short", i), steps, 10)
	}
	for i, logged := range logs {
		if told := logged.with("goes on from another point of its history"); len(told) != 1 {
			t.Errorf("worker %d told of the restore %d times: %q", i, len(told), told)
		}
	}
	for i := range engines { // their second generation was under way when the copy was made
		id := fmt.Sprint("long", i)
		if n := len(logs[0].with("lacks checkpoints", id)) + len(logs[1].with("lacks checkpoints", id)); n != 1 {
			t.Errorf("what %s lacks was told %d times", id, n)
		}
	}
	cursorsAfterRewind(t, e, kept, lost)
	again := drawnAgain(t, l)
	if again == 0 {
		t.Error("nothing that was acknowledged was lost")
	}
	t.Logf("runs=%d lost_steps=%d", all, again)
}
