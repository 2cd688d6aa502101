package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

var acts = []test{
	{"who has paused and who has resumed a run", actResume},
	{"the pause of a run that is running keeps its actor", actPauseLater},
	{"why a run is held, if nobody has paused it", actHeld},
	{"a resume of a tree", actResumeTree},
	{"who has cancelled a run", actCancel},
	{"a signal, if it is new", actSignal},
	{"tags, if any changes", actTags},
	{"a timeout, if it changes", actDeadline},
	{"the runs that a trigger and a backfill start", actSchedule},
	{"deletions of a queue, a limit and a schedule", actDeletions},
	{"nothing if nobody has given an actor or a reason", actByNobody},
}

func (b *fixture) act(actor, reason string) store.ActorAndReason {
	return store.ActorAndReason{Actor: actor, Reason: reason, At: b.afterStart(20 * time.Second)}
}

// wantActs reads all events and compares those with an actor, a reason or a value, and those of pauses, with want: the name of the run,
// the type, the actor, the reason, and the old and the new value.
func (b *fixture) wantActs(want ...string) {
	b.Helper()
	last := b.commitRunningRun("the last run")
	b.commitOwnershipEnd(b.newCompletion(last.UUID, epochAt(1)))
	var got []string
	for _, e := range b.tail(last.UUID, 100) {
		if e.Actor+e.Reason+e.OldValue+e.NewValue != "" || e.Type == store.EventPaused {
			got = append(got, fmt.Sprintf("%s %s %s/%s %s>%s", e.Name, eventWords[e.Type], e.Actor, e.Reason, e.OldValue, e.NewValue))
		}
		if e.At.IsZero() {
			b.Errorf("%s has no time", eventWords[e.Type])
		}
	}
	if !slices.Equal(got, want) {
		b.Errorf("acts:\n got %q\nwant %q", got, want)
	}
}

func actResume(b *fixture) {
	r := b.commitPendingRun("r", b.now)
	for _, verb := range []store.ControlVerb{store.VerbPause, store.VerbResume} {
		o := b.newControlRequest(verb, r.UUID)
		if verb == store.VerbResume {
			o.Actor, o.Reason = "bob", "mended"
		}
		for range 2 { // as if the first reply had been lost
			b.controlRuns(o)
		}
	}
	o := b.newControlRequest(store.VerbPause, r.UUID)
	o.Actor, o.Reason = "", ""
	b.controlRuns(o)
	o.Verb = store.VerbResume
	b.controlRuns(o)
	repaired := b.commitPendingRun("repaired", b.now)
	for _, verb := range []store.ControlVerb{store.VerbPause, store.VerbResume} {
		o := b.newControlRequest(verb, repaired.UUID)
		o.ForRepair = true
		b.controlRuns(o)
	}
	b.wantActs("r paused ann/it's by hand >", "r resumed bob/mended >", "r paused / >", "repaired paused ann/it's by hand >")
}

func actPauseLater(b *fixture) {
	parked, crashed, held, drifted := b.commitRunningRun("parked"), b.commitPendingRun("crashed", b.now), b.commitRunningRun("held"), b.commitRunningRun("drifted")
	q := b.query(b.now)
	b.claimOne(q, crashed.UUID)
	b.controlExistingRuns(store.VerbPause, parked.UUID, crashed.UUID, held.UUID, drifted.UUID)
	b.commitOwnershipEnd(b.park(parked, time.Time{}))
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: held.UUID, Epoch: epochAt(1), Status: store.Pending, HoldsRun: true, Now: b.now, HoldReason: "refused"})
	b.commitOwnershipEnd(store.OwnershipEnd{
		UUID: drifted.UUID, Epoch: epochAt(1), Status: store.Pending, HoldsRun: true, Now: b.now, HoldReason: "drift",
		Divergence: &store.Divergence{Version: "v", At: b.now, Call: "charge", Detail: "renamed"},
	})
	if got, err := b.store.Claim(b.ctx, b.query(q.LeaseUntil)); err != nil || len(got.Runs) != 1 || got.Runs[0].Run.Status != store.Paused {
		b.Fatalf("Claim: %+v, %v, want the paused run", got, err)
	}
	alone := b.commitRunningRun("alone")
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: alone.UUID, Epoch: epochAt(1), Status: store.Paused, HoldReason: "broken"})
	b.wantActs("parked paused ann/it's by hand >", "held paused ann/it's by hand >", "drifted paused ann/it's by hand >",
		"crashed paused ann/it's by hand >", "alone paused / >")
}

func actHeld(b *fixture) {
	crashed, held, drifted, released := b.commitPendingRun("crashed", b.now), b.commitRunningRun("held"), b.commitRunningRun("drifted"), b.commitRunningRun("released")
	hold := func(r store.Run, end store.OwnershipEnd) {
		end.UUID, end.Epoch, end.Status, end.HoldsRun, end.Now = r.UUID, epochAt(1), store.Pending, true, b.now
		b.commitOwnershipEnd(end)
	}
	hold(held, store.OwnershipEnd{HoldReason: "refused", MaxCrashes: 1})
	hold(drifted, store.OwnershipEnd{HoldReason: "drift", Divergence: &store.Divergence{Version: "v", At: b.now, Call: "charge", Detail: "renamed"}})
	hold(released, store.OwnershipEnd{HoldReason: "refused", MaxCrashes: 2}) // claimable again, so there is no event
	q := b.query(b.now)
	b.claimOne(q, crashed.UUID)
	again := b.query(q.LeaseUntil)
	again.MaxCrashes = 1
	if _, err := b.store.Claim(b.ctx, again); err != nil {
		b.Fatal(err)
	}
	b.wantActs("held paused / >"+store.HeldTooOftenReason("refused", 1), "drifted paused / >drift", "crashed paused / >"+store.CrashedTooOftenReason(1))
}

func actCancel(b *fixture) {
	terminated, running, together := b.commitPendingRun("terminated", b.now), b.commitRunningRun("running"), b.commitRunningRun("together")
	failing, silent := b.commitRunningRun("failing"), b.commitRunningRun("silent")
	b.controlExistingRuns(store.VerbTerminate, terminated.UUID)
	b.controlExistingRuns(store.VerbCancel, running.UUID, together.UUID)
	cancelled := func(r store.Run) store.OwnershipEnd {
		return store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: store.Cancelled, Error: []byte("{}"), EndedAt: b.now, Now: b.now}
	}
	one, two, three := cancelled(running), cancelled(together), cancelled(silent)
	b.commitOwnershipEnd(one)
	failed := store.OwnershipEnd{UUID: failing.UUID, Epoch: epochAt(1), Status: store.Failed, Error: []byte("{}"), FailedType: "t", EndedAt: b.now, Now: b.now}
	b.commit(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{&two, &failed}})
	b.commitOwnershipEnd(three) // by itself
	b.wantActs("terminated cancelled ann/it's by hand >", "running cancelled ann/it's by hand >", "together cancelled ann/it's by hand >")
}

func actResumeTree(b *fixture) {
	root := b.commitRunningRun("root")
	child := b.commitPendingChild(root, "child")
	b.controlExistingRuns(store.VerbPause, child.UUID)
	b.controlExistingRuns(store.VerbPause, root.UUID)   // the root has not paused yet
	b.controlExistingRuns(store.VerbResume, child.UUID) // its parent keeps it paused
	b.controlExistingRuns(store.VerbResume, child.UUID) // nothing changes
	b.controlExistingRuns(store.VerbResume, root.UUID)
	other := b.commitPendingRun("other", b.now)
	b.controlExistingRuns(store.VerbResume, other.UUID) // it is not paused
	b.wantActs("child paused ann/it's by hand >", "child resumed ann/it's by hand >", "root resumed ann/it's by hand >", "child resumed ann/it's by hand >")
}

func actSignal(b *fixture) {
	r, ended := b.commitRunningRun("r"), b.commitRunningRun("ended")
	b.commitOwnershipEnd(b.newCompletion(ended.UUID, epochAt(1)))
	first := b.message(r.UUID, "go", 1)
	first.Key, first.ActorAndReason = "once", b.act("ann", "the customer called")
	for range 2 { // as if the first reply had been lost
		wantOutcome(b, "a signal", b.commitSignal(first).Outcome, store.Written)
	}
	again, late, plain := b.message(r.UUID, "go", 2), b.message(ended.UUID, "go", 3), b.message(r.UUID, "go", 4)
	again.Key, again.ActorAndReason, late.ActorAndReason = "once", b.act("bob", ""), b.act("bob", "")
	wantOutcome(b, "with a used key", b.commitSignal(again).Outcome, store.AlreadyRecorded)
	wantOutcome(b, "to an ended run", b.commitSignal(late).Outcome, store.Fenced)
	other := b.message(b.commitRunningRun("other").UUID, "stop", 5)
	other.ActorAndReason = b.act("", "only a reason")
	batch := &store.Batch{Signals: []*store.SignalWrite{&other, &plain}}
	for range 2 {
		b.commit(batch)
		wantOutcome(b, "with another", other.Outcome, store.Written)
		wantOutcome(b, "without an actor", plain.Outcome, store.Written)
	}
	b.wantActs("r signalled ann/the customer called >go", "other signalled /only a reason >stop")
}

func actTags(b *fixture) {
	r := b.commitRunningRun("r")
	set := func(by store.ActorAndReason, epoch store.Epoch, tags ...store.Tag) {
		b.Helper()
		if _, err := b.store.SetTags(b.ctx, r.UUID, tags, epoch, by); err != nil {
			b.Fatalf("SetTags: %v", err)
		}
	}
	red, size := store.Tag{Key: "team", Value: "red"}, store.Tag{Key: "size", Value: "7"}
	for range 2 {
		set(b.act("ann", "sorted"), store.Epoch{}, red, size)
	}
	set(store.ActorAndReason{}, store.Epoch{}, store.Tag{Key: "team", Value: "blue"})
	set(b.act("bob", ""), epochAt(9), red) // another epoch
	for range 2 {
		set(b.act("bob", ""), store.Epoch{}, store.Tag{Key: "team"}, size)
	}
	b.wantActs("r tagged ann/sorted >size=7, team=red", "r tagged bob/ >size=7, team=")
}

func actDeadline(b *fixture) {
	r, ended := b.commitRunningRun("r"), b.commitRunningRun("ended")
	b.commitOwnershipEnd(b.newCompletion(ended.UUID, epochAt(1)))
	at := b.afterStart(time.Minute)
	for _, d := range []store.DeadlineChangeRequest{
		{Run: r.UUID, NewDeadline: at, ActorAndReason: b.act("ann", "it takes longer")},
		{Run: r.UUID, NewDeadline: at, ActorAndReason: b.act("ann", "it takes longer")},
		{Run: ended.UUID, NewDeadline: at, ActorAndReason: b.act("ann", "too late")},
		{Run: r.UUID, NewDeadline: at.Add(time.Minute)},
		{Run: r.UUID, ActorAndReason: b.act("bob", "")},
	} {
		d.Now = b.now
		if err := b.store.SetDeadline(b.ctx, &d); err != nil {
			b.Fatalf("SetDeadline: %v", err)
		}
	}
	b.wantActs("r timeout set ann/it takes longer >"+store.TimeText(at), "r timeout set bob/ "+store.TimeText(at.Add(time.Minute))+">")
}

func actSchedule(b *fixture) {
	taken := b.commitRunningRun("taken")
	triggered, filled, none, due := b.fire("s", "triggered", b.now), b.fire("s", "filled", b.now.Add(-time.Hour)), b.fire("s", taken.Name, b.now.Add(-2*time.Hour)), b.fire("s", "due", b.now.Add(-3*time.Hour))
	triggered.Kind, filled.Kind, none.Kind = store.FireTriggered, store.FireBackfill, store.FireBackfill
	fires := []store.ScheduleFire{triggered, filled, none, due}
	slices.SortFunc(fires, func(l, r store.ScheduleFire) int { return l.At.Compare(r.At) })
	b.changeSchedule(&store.ScheduleChangeRequest{Name: "s", ActorAndReason: b.act("ann", "the night was lost"), Plan: func(store.ScheduleSnapshot) *store.ScheduleWrite {
		return &store.ScheduleWrite{Row: store.Schedule{Name: "s", State: []byte("{}")}, Fires: fires, LastRunFireIndex: -1}
	}})
	got := b.actsInAnyOrder()
	if want := []string{"filled backfilled ann/the night was lost >s", "triggered triggered ann/the night was lost >s"}; !slices.Equal(got, want) {
		b.Errorf("acts: got %q, want %q", got, want)
	}
}

// actsInAnyOrder returns the acts of one transaction, sorted.
func (b *fixture) actsInAnyOrder() (acts []string) {
	b.Helper()
	last := b.commitRunningRun("the last run")
	b.commitOwnershipEnd(b.newCompletion(last.UUID, epochAt(1)))
	for _, e := range b.tail(last.UUID, 100) {
		if e.Actor+e.Reason != "" {
			acts = append(acts, fmt.Sprintf("%s %s %s/%s %s>%s", e.Name, eventWords[e.Type], e.Actor, e.Reason, e.OldValue, e.NewValue))
		}
	}
	slices.Sort(acts)
	return acts
}

func actDeletions(b *fixture) {
	if err := b.store.ChangeQueue(b.ctx, store.QueueChangeRequest{Name: "mail", Now: b.now}); err != nil {
		b.Fatalf("ChangeQueue: %v", err)
	}
	if err := b.store.ChangeLimit(b.ctx, store.LimitChangeRequest{Name: "stripe", Now: b.now, Settings: store.LimitSettings{Concurrent: 1}}); err != nil {
		b.Fatalf("ChangeLimit: %v", err)
	}
	b.setSchedule(store.Schedule{Name: "nightly", State: []byte("{}")})
	for _, want := range []bool{true, false} { // the second call changes nothing
		if found, err := b.store.DeleteQueue(b.ctx, store.DeleteOrResetRequest{Name: "mail", Now: b.now, Actor: "ann", Reason: "unused"}); err != nil || found != want {
			b.Errorf("DeleteQueue: %v, %v", found, err)
		}
		if found, err := b.store.DeleteLimit(b.ctx, store.DeleteOrResetRequest{Name: "stripe", Now: b.now, Actor: "bob"}); err != nil || found != want {
			b.Errorf("DeleteLimit: %v, %v", found, err)
		}
		b.changeSchedule(&store.ScheduleChangeRequest{Name: "nightly", ActorAndReason: b.act("", "moved"), Plan: func(s store.ScheduleSnapshot) *store.ScheduleWrite {
			if s.Row == nil {
				return nil
			}
			return &store.ScheduleWrite{Row: *s.Row, Delete: true, LastRunFireIndex: -1}
		}})
	}
	b.wantActs(" queue deleted ann/unused mail>", " limit deleted bob/ stripe>", " schedule deleted /moved nightly>")
	for _, e := range b.events("", 3) {
		if e.Run != store.NoRun || e.Workflow != "" {
			b.Errorf("the event of a deletion is %+v, want no run", e)
		}
	}
}

func actByNobody(b *fixture) {
	r := b.commitRunningRun("r")
	b.commitNewSignal(r.UUID, "go", 0)
	b.tag(r.UUID, store.Tag{Key: "team", Value: "red"})
	b.setDeadline(r.UUID, b.afterStart(time.Minute))
	fire := b.fire("s", "triggered", b.now)
	fire.Kind = store.FireTriggered
	b.setSchedule(store.Schedule{Name: "s", State: []byte("{}")}, fire)
	b.changeSchedule(&store.ScheduleChangeRequest{Name: "s", Plan: func(s store.ScheduleSnapshot) *store.ScheduleWrite {
		return &store.ScheduleWrite{Row: *s.Row, Delete: true, LastRunFireIndex: -1}
	}})
	if err := b.store.ChangeQueue(b.ctx, store.QueueChangeRequest{Name: "mail", Now: b.now}); err != nil {
		b.Fatalf("ChangeQueue: %v", err)
	}
	if found, err := b.store.DeleteQueue(b.ctx, store.DeleteOrResetRequest{Name: "mail", Now: b.now}); err != nil || !found {
		b.Errorf("DeleteQueue: %v, %v", found, err)
	}
	if err := b.store.ChangeLimit(b.ctx, store.LimitChangeRequest{Name: "stripe", Now: b.now}); err != nil {
		b.Fatalf("ChangeLimit: %v", err)
	}
	if found, err := b.store.DeleteLimit(b.ctx, store.DeleteOrResetRequest{Name: "stripe", Now: b.now}); err != nil || !found {
		b.Errorf("DeleteLimit: %v, %v", found, err)
	}
	b.wantEvents()
}
