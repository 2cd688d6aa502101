package durable_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// An operator's settings of a queue apply whatever code declares, and both are visible. A worker declares before it claims.
func TestQueueSettingsOfOperatorsAndOfCode(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", double)
		client := engineOn(t, s)
		want := func(what string, executing, declared int, set bool) {
			t.Helper()
			all := orFail(client.Queues(ctx))(t)
			if len(all) != 1 || all[0].Name != "mail" || all[0].Settings.MaxExecuting != executing || (all[0].Set != nil) != set ||
				(declared > 0) != (all[0].Declared != nil) || declared > 0 && all[0].Declared.MaxExecuting != declared {
				t.Errorf("%s: %+v, want %d at once, declared %d, set by an operator: %v", what, all, executing, declared, set)
			}
		}
		declare := func(version string, n int) {
			t.Helper()
			stop := running(t, engineWith(t, s, durable.Config{
				Workflows: []durable.Definition{w}, Version: version, QueueSettings: map[string]durable.QueueSettings{"mail": {MaxExecuting: n}},
			}))
			waitFor(t, func() bool {
				all := orFail(client.Queues(ctx))(t)
				return len(all) == 1 && all[0].DeclaredVersion == version && all[0].Declared.MaxExecuting == n
			})
			stop()
		}
		declare("v1", 3)
		want("declared", 3, 3, false)
		if err := client.SetQueue(ctx, "mail", durable.QueueSettings{MaxExecuting: 5, Rate: durable.QueueRate{Count: 1, Period: time.Second}}, durable.Actor("ann"), durable.Reason("slow")); err != nil {
			t.Fatal(err)
		}
		declare("v2", 4)
		want("set", 5, 4, true)
		q := orFail(client.Queues(ctx))(t)[0]
		if q.SetBy != "ann" || q.SetReason != "slow" || q.SetAt.IsZero() || q.DeclaredVersion != "v2" || q.Settings.Rate.Burst != 1 {
			t.Errorf("the queue is %+v", q)
		}
		if err := client.DeleteQueue(ctx, "mail"); err != nil {
			t.Fatal(err)
		}
		if all := orFail(client.Queues(ctx))(t); len(all) != 0 {
			t.Errorf("after DeleteQueue: %+v", all)
		}
		declare("v1", 7)
		want("declared again", 7, 7, false)
	})
}

// Each bad setting is an ErrInvalidConfig that names the field.
func TestQueueSettingsAreChecked(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := context.Background()
		e := engineOn(t, s)
		for field, settings := range map[string]durable.QueueSettings{
			"MaxExecuting":          {MaxExecuting: -1},
			"MaxExecutingPerWorker": {MaxExecutingPerWorker: -1},
			"MaxInProgress":         {MaxInProgress: -1},
			"MaxExecutingPerKey":    {MaxExecutingPerKey: -1},
			"MaxInProgressPerKey":   {MaxInProgressPerKey: -1},
			"Depth":                 {Depth: -1},
			"Rate.Count":            {Rate: durable.QueueRate{Count: -1}},
			"Rate.Burst":            {Rate: durable.QueueRate{Burst: -1}},
			"Rate.Period":           {Rate: durable.QueueRate{Count: 1}},
			"RatePerKey has":        {RatePerKey: durable.QueueRate{Period: time.Second}},
			"than a year to":        {Rate: durable.QueueRate{Count: 1, Period: 24 * time.Hour, Burst: 1000}},
		} {
			err := e.SetQueue(ctx, "mail", settings)
			if !errors.Is(err, durable.ErrInvalidConfig) || !strings.Contains(err.Error(), field) {
				t.Errorf("%s: %v", field, err)
			}
			if _, err := durable.New(s, durable.Config{QueueSettings: map[string]durable.QueueSettings{"mail": settings}}); !errors.Is(err, durable.ErrInvalidConfig) {
				t.Errorf("Config with a bad %s: %v", field, err)
			}
		}
		if err := e.SetQueue(ctx, "", durable.QueueSettings{}); !errors.Is(err, durable.ErrInvalidName) {
			t.Error(err)
		}
		if err := e.SetQueue(ctx, "mail", durable.QueueSettings{}, durable.DryRun()); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Error(err)
		}
		for verb, err := range map[string]error{"pause": e.PauseQueue(ctx, "none"), "resume": e.ResumeQueue(ctx, "none"), "delete": e.DeleteQueue(ctx, "none")} {
			if !errors.Is(err, durable.ErrNotFound) {
				t.Errorf("%s a queue without settings: %v", verb, err)
			}
		}
		w := durable.Define("w", double)
		for name, opt := range map[string]durable.StartOption{
			"no settings":     durable.GroupKey("acme"),
			"weight too low":  durable.GroupKey("acme", durable.KeyWeight(0)),
			"weight too high": durable.GroupKey("acme", durable.KeyWeight(durable.MaxKeyWeight+1)),
			"StartBy":         durable.StartBy(0),
		} {
			if _, err := w.Start(ctx, e, 1, opt); !errors.Is(err, durable.ErrInvalidConfig) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := w.Start(ctx, e, 1, durable.GroupKey("")); !errors.Is(err, durable.ErrInvalidName) {
			t.Error(err)
		}
		if _, err := e.List(ctx, durable.Filter{GroupKey: "acme"}, durable.Page{}); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Error(err)
		}
	})
}

// A start knows a queue that another process has just created, and a run in it has a place, which Get and List show.
func TestAStartIntoAQueueWithSettingsHasAPlace(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", double)
		operator, client := engineOn(t, s), engineOn(t, s, w)
		orFail(w.Start(ctx, client, 1, durable.ID("before"), durable.InQueue("mail")))(t)
		if err := operator.SetQueue(ctx, "mail", durable.QueueSettings{MaxInProgress: 1}); err != nil {
			t.Fatal(err)
		}
		run := orFail(w.Start(ctx, client, 2, durable.ID("keyed"), durable.InQueue("mail"), durable.GroupKey("acme", durable.KeyWeight(3)), durable.StartBy(time.Hour)))(t)
		orFail(w.Start(ctx, client, 2, durable.ID("plain"), durable.InQueue("mail")))(t)
		info := orFail(client.Get(ctx, "keyed"))(t)
		p := info.Place
		if p == nil || p.Queue != "mail" || p.GroupKey != "acme" || p.Weight != 3 || p.State != durable.PlaceOutside || p.InProgress || !p.StartBy.Equal(info.CreatedAt.Add(time.Hour)) {
			t.Errorf("the place is %+v", p)
		}
		if info := orFail(client.Get(ctx, "before"))(t); info.Place != nil {
			t.Errorf("the run from before has the place %+v", info.Place)
		}
		if err := operator.PauseQueue(ctx, "mail", durable.Actor("ann"), durable.Reason("outage")); err != nil {
			t.Fatal(err)
		}
		if p := orFail(client.Get(ctx, "keyed"))(t).Place; p == nil || p.String() != "is outside of queue mail (key acme, due, not yet seen by a worker, the queue is paused by ann: outage)" {
			t.Errorf("in a paused queue: %v", p)
		}
		page := orFail(client.List(ctx, durable.Filter{Queue: "mail", GroupKey: "acme"}, durable.Page{}))(t)
		if len(page.Runs) != 1 || page.Runs[0].ID != run.ID() {
			t.Errorf("the runs of the key: %+v", page.Runs)
		}
	})
}

// A full or closed queue refuses root runs, and not the repetition of a start that succeeded.
func TestAFullOrClosedQueueRefusesStarts(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", double)
		client := engineOn(t, s)
		if err := client.SetQueue(ctx, "mail", durable.QueueSettings{Depth: 2}); err != nil {
			t.Fatal(err)
		}
		in := durable.InQueue("mail")
		orFail(w.StartMany(ctx, client, make([]durable.StartItem[int], 1), in))(t)
		if _, err := w.StartMany(ctx, client, make([]durable.StartItem[int], 2), in); !errors.Is(err, durable.ErrQueueFull) {
			t.Errorf("two starts where one fits: %v", err)
		}
		orFail(w.Start(ctx, client, 1, in, durable.ID("a")))(t)
		if _, err := w.Start(ctx, client, 1, in, durable.ID("b")); !errors.Is(err, durable.ErrQueueFull) || !strings.Contains(err.Error(), `"mail"`) {
			t.Errorf("a start into the full queue: %v", err)
		}
		if err := client.SetQueue(ctx, "mail", durable.QueueSettings{Closed: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Start(ctx, client, 1, in, durable.ID("b")); !errors.Is(err, durable.ErrQueueClosed) {
			t.Errorf("a start into the closed queue: %v", err)
		}
		orFail(w.Start(ctx, client, 1, in, durable.ID("a")))(t)
		if err := client.SetQueue(ctx, "mail", durable.QueueSettings{}); err != nil {
			t.Fatal(err)
		}
		orFail(w.Start(ctx, client, 1, in, durable.ID("b")))(t)
	})
}

// countingDepths is a store that counts the readings of depths.
type countingDepths struct {
	durable.Store
	readings atomic.Int64
}

func (s *countingDepths) QueueDepth(ctx context.Context, queue string, most int) (int, error) {
	s.readings.Add(1)
	return s.Store.QueueDepth(ctx, queue, most)
}

// The depth of a queue is not read for each start while much of it is free, and is bounded nevertheless.
func TestTheDepthIsReadSeldomWhileMuchIsFree(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx, counting, in := within(t), &countingDepths{Store: s}, durable.InQueue("mail")
		w := durable.Define("w", double)
		client := engineOn(t, counting)
		if err := client.SetQueue(ctx, "mail", durable.QueueSettings{Depth: 50}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for i := range 20 {
			orFail(w.Start(ctx, client, i, in))(t)
		}
		if n, most := counting.readings.Load(), 6+int64(time.Since(began)/(100*time.Millisecond)); n > most { // a reading allows from 2 to 4 further starts
			t.Errorf("20 starts have read the depth %d times, want at most %d", n, most)
		}
		started := 20
		for err := error(nil); err == nil && started < 60; {
			if _, err = w.Start(ctx, client, 1, in); err == nil {
				started++
			} else if !errors.Is(err, durable.ErrQueueFull) {
				t.Fatal(err)
			}
		}
		if started != 50 {
			t.Errorf("%d runs were started in a queue with the depth 50", started)
		}
	})
}

// Children have the key of their parent in its queue, their own elsewhere, and are not refused. What a workflow starts as a root
// run is refused, in every replay.
func TestChildrenInheritTheGroupKey(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		kid := durable.Define("kid", double)
		parent := durable.Define("parent", func(c *durable.Ctx, in int) (bool, error) {
			_, err := c.StartChild("same", kid, in)
			_, errOther := c.StartChild("other", kid, in, durable.InQueue("bulk"), durable.GroupKey("own"))
			_, errRoot := c.Start("root", kid, in, durable.InQueue("bulk"))
			if err := errors.Join(err, errOther); err != nil {
				return false, err
			}
			return errors.Is(errRoot, durable.ErrQueueClosed), nil
		})
		e := engineOn(t, s, parent) // no kid is executed
		if err := e.SetQueue(ctx, "bulk", durable.QueueSettings{Closed: true}); err != nil {
			t.Fatal(err)
		}
		refused, err := parent.Call(ctx, e, 1, durable.ID("p"))
		if err != nil || !refused {
			t.Fatalf("a root run in a closed queue was refused: %v, %v", refused, err)
		}
		places := map[string]*durable.QueuePlace{}
		for _, c := range orFail(e.Tree(ctx, "p"))(t).Children {
			places[c.Name] = orFail(e.Get(ctx, c.ID))(t).Place
		}
		if len(places) != 2 || places["same"] != nil {
			t.Errorf("places: %+v", places)
		}
	})
}

// A run that has not begun by its StartBy expires in a queue without settings, too, and its function is not called. One that
// begins in time takes as long as it needs.
func TestARunThatHasNotBegunInTimeExpires(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, in int) (int, error) {
			_, err := c.Child("kid", durable.Define("kid", double), in) // needs a run without a mark
			return in, err
		})
		kid := durable.Define("kid", double)
		client := engineOn(t, s)
		late := orFail(w.Start(ctx, client, 1, durable.StartBy(time.Millisecond)))(t)
		paused := orFail(w.Start(ctx, client, 2, durable.StartBy(time.Hour), durable.ID("paused")))(t)
		if _, err := client.Pause(ctx, "paused"); err != nil {
			t.Fatal(err)
		}
		if p := orFail(client.Get(ctx, late.ID()))(t).Place; p == nil || p.StartBy.IsZero() {
			t.Errorf("the place is %+v", p)
		}
		e := engineOn(t, s, w, kid)
		running(t, e)
		if _, err := late.Result(ctx); !errors.Is(err, durable.ErrTimeout) {
			t.Errorf("the late run: %v", err)
		}
		if info := orFail(client.Get(ctx, late.ID()))(t); info.Status != durable.StatusExpired {
			t.Errorf("the late run is %s", info.Status)
		}
		if _, err := client.Resume(ctx, "paused"); err != nil {
			t.Fatal(err)
		}
		if got, err := paused.Result(ctx); got != 2 || err != nil {
			t.Errorf("the run that began in time: %d, %v", got, err)
		}
		here := orFail(w.Start(ctx, e, 3, durable.StartBy(time.Hour)))(t)
		if got, err := here.Result(ctx); got != 3 || err != nil {
			t.Errorf("a run in the worker itself: %d, %v", got, err)
		}
	})
}
