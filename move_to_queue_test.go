package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// Runs that wait in a line are executed in the order of the priorities that they have been given since, and a run that was moved
// is executed from its new queue. The worker executes one run of the queue at a time, and its second slot is for the other queue.
func TestSetPriorityAndMoveToQueueChangeWhatIsNext(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		began := make(chan string)
		w := durable.Define("w", func(c *durable.Ctx, in string) (string, error) {
			return in, c.Do("s", func(context.Context) error { began <- c.ID(); return nil })
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Concurrency: 1})
		if err := e.SetQueue(ctx, "mail", durable.QueueSettings{MaxExecuting: 1}); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"a", "b", "c", "d"} {
			orFail(w.Start(ctx, e, id, durable.ID(id), durable.InQueue("mail"), durable.GroupKey("k")))(t)
		}
		for id, p := range map[string]int{"d": 2, "c": 1, "a": -1} {
			if err := e.SetPriority(ctx, id, p, durable.Actor("ada"), durable.Reason("so")); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.MoveToQueue(ctx, "b", "other", durable.Actor("ada")); err != nil {
			t.Fatal(err)
		}
		stop := running(t, e)
		var order []string
		for range 4 {
			order = append(order, <-began)
		}
		stop()
		if order = slices.DeleteFunc(order, func(id string) bool { return id == "b" }); !slices.Equal(order, []string{"d", "c", "a"}) {
			t.Errorf("the runs of the queue began in the order %q", order)
		}
		if b := orFail(e.Get(ctx, "b"))(t); b.Queue != "other" || b.Status != durable.StatusCompleted {
			t.Errorf("the moved run is %+v", b)
		}
		changes := make(map[string]string)
		waitFor(t, func() bool { // events wait for older transactions of other tests
			for _, event := range orFail(e.Events(ctx, durable.Page{}))(t) {
				if event.Type == durable.EventMovedToQueue || event.Type == durable.EventPriorityChanged {
					changes[event.ID] = fmt.Sprint(event.Type, " ", event.Old, " ", event.New, " ", event.Actor, " ", event.Reason)
				}
			}
			return len(changes) >= 4
		})
		if len(changes) != 4 || changes["b"] != "moved mail other ada " || changes["d"] != "priority 0 2 ada so" {
			t.Errorf("the events are %q", changes)
		}
	})
}

// A change that is refused is an error that tells why, and changes nothing.
func TestMoveToQueueAndSetPriorityAreRefused(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, in string) (string, error) { return in, c.Sleep("long", time.Hour) })
		e := engineOn(t, s, w)
		stop := running(t, e)
		orFail(w.Start(ctx, e, "", durable.ID("sleeps")))(t)
		waitFor(t, func() bool { return orFail(e.Get(ctx, "sleeps"))(t).Status == durable.StatusWaiting })
		stop()
		orFail(w.Start(ctx, e, "", durable.ID("waits")))(t)
		orFail(w.Start(ctx, e, "", durable.ID("cancelled")))(t)
		orFail(e.Cancel(ctx, "cancelled"))(t)
		orFail(e.Pause(ctx, "sleeps"))(t)
		for queue, settings := range map[string]durable.QueueSettings{"closed": {Closed: true}, "full": {Depth: 1}} {
			if err := e.SetQueue(ctx, queue, settings); err != nil {
				t.Fatal(err)
			}
		}
		orFail(w.Start(ctx, e, "", durable.InQueue("full")))(t)
		for _, c := range []struct {
			call string
			err  error
			want error
			text string
		}{
			{"move one that has begun", e.MoveToQueue(ctx, "sleeps", "other"), durable.ErrState, `cannot move run "sleeps": it is paused, and has begun`},
			{"raise one that has begun", e.SetPriority(ctx, "sleeps", 1), durable.ErrState, "set the priority of"},
			{"move one that has ended", e.MoveToQueue(ctx, "cancelled", "other"), durable.ErrState, "cancelled"},
			{"move none", e.MoveToQueue(ctx, "nobody", "other"), durable.ErrNotFound, "nobody"},
			{"move to no queue", e.MoveToQueue(ctx, "waits", ""), durable.ErrInvalidName, "queue"},
			{"raise too far", e.SetPriority(ctx, "waits", 3), durable.ErrInvalidConfig, "from -2 to 2"},
			{"with a wrong option", e.SetPriority(ctx, "waits", 1, durable.FreezeTimers()), durable.ErrInvalidConfig, "Reason and Actor"},
			{"move to a closed queue", e.MoveToQueue(ctx, "waits", "closed"), durable.ErrQueueClosed, "closed"},
			{"move to a full queue", e.MoveToQueue(ctx, "waits", "full"), durable.ErrQueueFull, "full"},
		} {
			if !errors.Is(c.err, c.want) || !strings.Contains(fmt.Sprint(c.err), c.text) {
				t.Errorf("%s: %v, want %v", c.call, c.err, c.want)
			}
		}
		if r := orFail(e.Get(ctx, "waits"))(t); r.Queue != durable.DefaultQueue || r.Priority != 0 {
			t.Errorf("the run is in queue %q with priority %d", r.Queue, r.Priority)
		}
	})
}

// losesReplies commits a requeue, and loses its result and those of all further calls until lossEnds is set.
type losesReplies struct {
	durable.Store
	then     func() // after the first call
	lossEnds bool
}

func (l *losesReplies) MoveRun(ctx context.Context, m *store.MoveRunRequest) error {
	err := l.Store.MoveRun(ctx, m)
	if err == nil && l.then != nil {
		l.then()
		l.then = nil
	}
	if err == nil && !l.lossEnds {
		return store.ErrUnavailable
	}
	return err
}

// A call whose result was lost can be repeated, also if the run was executed meanwhile. There is one event.
func TestMoveToQueueSurvivesALostResult(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", double)
		worker := engineOn(t, s, w)
		run := orFail(w.Start(ctx, worker, 2, durable.ID("r")))(t)
		replies := &losesReplies{Store: s, then: func() {
			stop := running(t, worker)
			orFail(run.Result(ctx))(t)
			stop()
		}}
		client := engineAsGiven(t, replies, durable.Config{Patience: time.Millisecond})
		if err := client.MoveToQueue(ctx, "r", "other"); !errors.Is(err, durable.ErrUnavailable) {
			t.Errorf("a move whose result was lost: %v", err)
		}
		replies.lossEnds = true
		if err := client.MoveToQueue(ctx, "r", "other"); err != nil {
			t.Errorf("the repeated call: %v", err)
		}
		if r := orFail(worker.Get(ctx, "r"))(t); r.Queue != "other" || r.Status != durable.StatusCompleted {
			t.Errorf("the run is %+v", r)
		}
		var types []durable.EventType
		waitFor(t, func() bool { // events wait for older transactions of other tests
			types = nil
			for _, event := range orFail(worker.Events(ctx, durable.Page{}))(t) {
				types = append(types, event.Type)
			}
			return slices.Contains(types, durable.EventCompleted)
		})
		if moves := slices.DeleteFunc(types, func(x durable.EventType) bool { return x != durable.EventMovedToQueue }); len(moves) != 1 {
			t.Errorf("%d events of one move", len(moves))
		}
	})
}
