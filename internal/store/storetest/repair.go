package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var repairs = []test{
	{"the next generation has what was kept, and starts anew", repairKeeps},
	{"calls behind the first change lose the mark of their goroutine", repairUnmarks},
	{"the superseded generation keeps its end and its checkpoints", repairArchives},
	{"repeated after a lost reply, it changes nothing", repairRepeated},
	{"a second generation follows the first", repairTwice},
	{"children move to the superseded generation, or stay", repairChildren},
	{"a child is retried beneath its parent, in one transaction", repairTree},
	{"signals of dropped receives are received anew, tags stay", repairSignals},
	{"a run that changed meanwhile is not repaired", repairOutdated},
	{"a fence takes a live run away from its owner", repairFence},
	{"a fence of a run that changed meanwhile changes nothing", repairFenceOutdated},
	{"a fence of a run that is held for drift leaves it held", repairFenceOfAHeldRun},
	{"a pause for a repair is told from a person's", repairPauseOrPause},
	{"the end of a pause for a repair leaves a hold", repairPauseAndHold},
	{"a repair that releases a hold deletes the divergences", repairReleasesHold},
	{"a pause for a repair expires unless it is extended", repairPauseExpires},
	{"the owner of a superseded epoch writes nothing", repairLateOwner},
	{"a payload that is nil and one that is empty stay so", repairPayloads},
	{"an event with the numbers of the generations", repairEvent},
	{"a run that passed its queue to end arrives again", repairPassed},
	{"a run whose end no admission has seen keeps its place", repairPlaceKept},
	{"a run that has no place any more begins again within the bounds of its queue", repairWithoutPlace},
	{"a live run is resumed with its repair, and so are those paused with it", repairResumes},
	{"a run that is retried waits at most until its deadline", repairWaitsAtMostUntilTheDeadline},
	{"a run that was paused before stays paused", repairStaysPaused},
	{"of two repairs at once, one is made", func(b *fixture) { raceRepairs(b, b.store) }},
	{"a repair against a claim", func(b *fixture) { raceRepairClaim(b, b.store) }},
	{"a repair against a cancel", func(b *fixture) { raceRepairCancel(b, b.store) }},
	{"a repair against signals", func(b *fixture) { raceRepairSignals(b, b.store) }},
	{"a fence against a completion", func(b *fixture) { raceFenceFinish(b, b.store) }},
	{"a fence against a checkpoint", func(b *fixture) { raceFenceStep(b, b.store) }},
}

// failedRun commits a run with the given completed steps and then a failed one called "fails", which has failed. Its
// epoch is the first.
func (b *fixture) failedRun(steps ...string) store.Run {
	b.Helper()
	r := b.commitRunningRun("")
	for i, name := range steps {
		s := b.completed(r.UUID, epochAt(1), name)
		s.Seq = int32(i + 1)
		wantOutcome(b, name, b.commitStep(s, false).Outcome, store.Written)
	}
	s := b.completed(r.UUID, epochAt(1), "fails")
	s.Seq, s.Status, s.Output, s.Error = int32(len(steps)+1), store.StepFailed, nil, []byte(`{"message":"no"}`)
	wantOutcome(b, "the failed step", b.commitStep(s, false).Outcome, store.Written)
	b.failRun(r)
	return b.row(r.UUID)
}

// failRun ends a run of the first epoch as failed.
func (b *fixture) failRun(r store.Run) {
	b.Helper()
	w := b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, ParentToWake: r.Parent, Epoch: epochAt(1), Status: store.Failed, Error: []byte(`{"message":"no","step":"fails"}`), EndedAt: b.afterStart(time.Minute)})
	wantOutcome(b, "the failure", w.Outcome, store.Written)
}

func stateOf(r store.Run) store.RunState {
	return store.RunState{Found: true, Status: r.Status, Epoch: r.Epoch, Control: r.Control}
}

// repairOf returns the repair that keeps the given checkpoints of a run, whose generation has the number.
func (b *fixture) repairOf(r store.Run, number int32, keep ...string) *store.RepairRequest {
	b.Helper()
	slices.Sort(keep)
	return &store.RepairRequest{
		RequestID: uuid.New(), Verb: "retry", Actor: "ada", Reason: "the bank is back", Now: b.afterStart(time.Hour),
		Runs: []store.RunRepair{{
			Run: r.UUID, StateBefore: stateOf(r), SupersededNumber: number, CheckpointCount: len(b.history(r.UUID)), FromStep: "fails", KeptSteps: keep, Detail: []byte(`{"kept":1}`),
			Epoch: r.Epoch.Next(nonce), Status: store.Pending, WakeAt: b.afterStart(time.Hour), Progress: len(keep),
		}},
	}
}

// repair applies a repair, and tries it again while others hold the rows.
func (b *fixture) repair(r *store.RepairRequest) store.WriteOutcome {
	b.Helper()
	for {
		err := b.store.ApplyRepair(b.ctx, r)
		if err == nil {
			return r.Outcome
		}
		if b.ctx.Err() != nil || !errors.Is(err, store.ErrLocked) && !errors.Is(err, store.ErrUnavailable) {
			b.Fatalf("Repair: %v", err)
		}
	}
}

func (b *fixture) wantRepaired(r *store.RepairRequest) {
	b.Helper()
	wantOutcome(b, "the repair", b.repair(r), store.Written)
}

func (b *fixture) fence(f *store.FenceRequest) store.WriteOutcome {
	b.Helper()
	f.Now, f.NextEpochNonce = b.afterStart(time.Hour), nonce
	for {
		err := b.store.FenceRun(b.ctx, f)
		if err == nil {
			return f.Outcome
		}
		if b.ctx.Err() != nil || !errors.Is(err, store.ErrLocked) && !errors.Is(err, store.ErrUnavailable) {
			b.Fatalf("Fence: %v", err)
		}
	}
}

func (b *fixture) generations(run uuid.UUID) []store.SupersededGeneration {
	b.Helper()
	all, err := b.store.SupersededGenerations(b.ctx, run, store.GenerationsQuery{Payloads: store.AllPayloads})
	if err != nil {
		b.Fatalf("Generations: %v", err)
	}
	return all
}

func namesOf(steps []store.Step) (names []string) {
	for i := range steps {
		names = append(names, steps[i].Name)
	}
	slices.Sort(names)
	return names
}

func (b *fixture) wantNames(what string, steps []store.Step, want ...string) {
	b.Helper()
	if got := namesOf(steps); !slices.Equal(got, want) {
		b.Errorf("%s: the checkpoints are %q, want %q", what, got, want)
	}
}

func repairKeeps(b *fixture) {
	r := b.failedRun("first", "second")
	p := b.repairOf(r, 1, "first")
	corrected := b.completed(r.UUID, r.Epoch, "second")
	corrected.Output, corrected.Seq = []byte(`"better"`), 2
	p.Runs[0].NewSteps = []store.Step{corrected}
	p.Runs[0].Deadline = b.afterStart(3 * time.Hour)
	b.wantRepaired(p)
	got := b.row(r.UUID)
	if got.Status != store.Pending || got.Epoch != r.Epoch.Next(nonce) || !got.WakeAt.Equal(b.afterStart(time.Hour)) || !got.Deadline.Equal(b.afterStart(3*time.Hour)) ||
		got.Error != nil || !got.EndedAt.IsZero() || string(got.Input) != string(r.Input) || got.Name != r.Name || got.Owner.Valid {
		b.Errorf("the next generation is %+v", got)
	}
	q := b.query(b.afterStart(time.Hour))
	c := b.claimOne(q, r.UUID)
	b.wantNames("claimed", c.History, "first", "second")
	for _, s := range c.History {
		if s.Epoch != r.Epoch.Next(nonce) {
			b.Errorf("step %q has the epoch %v", s.Name, s.Epoch)
		}
		if s.Name == "second" && string(s.Output) != `"better"` {
			b.Errorf("the corrected step is %+v", s)
		}
	}
	epoch := c.Run.Epoch
	again := b.completed(r.UUID, epoch, "fails")
	wantOutcome(b, "the dropped step", b.commitStep(again, false).Outcome, store.Written)
	wantOutcome(b, "the end", b.commitOwnershipEnd(b.newCompletion(r.UUID, epoch)).Outcome, store.Written)
}

func repairUnmarks(b *fixture) {
	for first, want := range map[int32][]int32{0: {3, 4, 5}, 2: {2, 4, 4}, 3: {3, 4, 4}, 5: {3, 4, 5}} {
		r := b.commitRunningRun("")
		for i, name := range []string{"a", "b", "c"} {
			s := b.completed(r.UUID, epochAt(1), name)
			s.Seq = int32(i + 3)
			wantOutcome(b, name, b.commitStep(s, false).Outcome, store.Written)
		}
		b.failRun(r)
		p := b.repairOf(b.row(r.UUID), 1, "a", "b", "c")
		p.Runs[0].FirstChangedSeq = first
		b.wantRepaired(p)
		var got []int32
		for _, s := range b.history(r.UUID) {
			got = append(got, s.Seq)
		}
		if !slices.Equal(got, want) {
			b.Errorf("with the first change %d, the sequence numbers are %d, want %d", first, got, want)
		}
	}
}

func repairArchives(b *fixture) {
	r := b.failedRun("first")
	if got := b.generations(r.UUID); len(got) != 0 {
		b.Fatalf("before the repair: %+v", got)
	}
	before := b.history(r.UUID)
	p := b.repairOf(r, 1, "first")
	b.wantRepaired(p)
	all := b.generations(r.UUID)
	if len(all) != 1 {
		b.Fatalf("%d generations, want 1: %+v", len(all), all)
	}
	g := all[0]
	if g.Number != 1 || g.RequestID != p.RequestID || g.Verb != "retry" || g.Actor != "ada" || g.Reason != "the bank is back" || g.FromStep != "fails" ||
		!g.At.Equal(p.Now) || string(g.Detail) != `{"kept":1}` || g.ArchiveID != p.Runs[0].ArchiveID() {
		b.Errorf("the generation is %+v", g)
	}
	if g.Run.Status != store.Failed || string(g.Run.Error) != string(r.Error) || string(g.Run.Input) != string(r.Input) || !g.Run.EndedAt.Equal(r.EndedAt) ||
		!g.Run.CreatedAt.Equal(r.CreatedAt) || g.Run.Epoch != r.Epoch || g.Run.Workflow != r.Workflow || g.Run.Queue != r.Queue {
		b.Errorf("its run is %+v, want %+v", g.Run, r)
	}
	after := b.history(g.ArchiveID)
	for i := range before {
		before[i].Run = g.ArchiveID
	}
	wantSteps(b, "its history", after, before...)
	if few, err := b.store.SupersededGenerations(b.ctx, r.UUID, store.GenerationsQuery{}); err != nil || len(few) != 1 || few[0].Run.Error != nil || few[0].Run.Input != nil {
		b.Errorf("without payloads: %+v, %v", few, err)
	}
	for before, want := range map[int32]int{1: 0, 2: 1} {
		if some, err := b.store.SupersededGenerations(b.ctx, r.UUID, store.GenerationsQuery{BeforeNumber: before, Limit: 1}); err != nil || len(some) != want {
			b.Errorf("before generation %d: %+v, %v", before, some, err)
		}
	}
}

func repairRepeated(b *fixture) {
	r := b.failedRun("first")
	p := b.repairOf(r, 1, "first")
	b.wantRepaired(p)
	b.claimOne(b.query(b.afterStart(time.Hour)), r.UUID)
	before := fmt.Sprintf("%+v", b.row(r.UUID))
	b.wantRepaired(p)
	if after := fmt.Sprintf("%+v", b.row(r.UUID)); after != before {
		b.Errorf("the repeated repair changed\n%s to\n%s", before, after)
	}
	if n := len(b.generations(r.UUID)); n != 1 {
		b.Errorf("%d generations", n)
	}
}

func repairTwice(b *fixture) {
	r := b.failedRun("first")
	b.wantRepaired(b.repairOf(r, 1, "first"))
	c := b.claimOne(b.query(b.afterStart(time.Hour)), r.UUID)
	b.commitStep(b.completed(r.UUID, c.Run.Epoch, "second"), false)
	done := b.newCompletion(r.UUID, c.Run.Epoch)
	b.commitOwnershipEnd(done)
	b.wantRepaired(b.repairOf(b.row(r.UUID), 2, "second"))
	all := b.generations(r.UUID)
	if len(all) != 2 || all[0].Run.Status != store.Failed || all[1].Run.Status != store.Completed || string(all[1].Run.Output) != `"all"` || all[1].Number != 2 {
		b.Fatalf("the generations are %+v", all)
	}
	b.wantNames("the first", b.history(all[0].ArchiveID), "fails", "first")
	b.wantNames("the second", b.history(all[1].ArchiveID), "first", "second")
	b.wantNames("the third", b.history(r.UUID), "second")
}

func repairPayloads(b *fixture) {
	r := b.commitRunningRun("")
	empty, none := b.completed(r.UUID, epochAt(1), "empty"), b.completed(r.UUID, epochAt(1), "none")
	empty.Output, none.Output = []byte{}, nil
	b.commitStep(empty, false)
	b.commitStep(none, false)
	b.failRun(r)
	p := b.repairOf(b.row(r.UUID), 1, "empty", "none")
	b.wantRepaired(p)
	empty.Epoch, none.Epoch = p.Runs[0].Epoch, p.Runs[0].Epoch
	wantSteps(b, "kept", b.history(r.UUID), empty, none)
}

func repairEvent(b *fixture) {
	r := b.failedRun()
	b.wantRepaired(b.repairOf(r, 1))
	b.wantEvents(r.Name+" failed", r.Name+" repaired")
	all := b.events("", 2)
	e := all[len(all)-1]
	if e.Type != store.EventRepaired || e.Run != r.UUID || e.Actor != "ada" || e.Reason != "the bank is back" || e.OldValue != "1" || e.NewValue != "2" {
		b.Errorf("the events are %+v", all)
	}
}

func repairOutdated(b *fixture) {
	r := b.failedRun("first")
	for what, change := range map[string]func(*store.RepairRequest){
		"another status":             func(p *store.RepairRequest) { p.Runs[0].StateBefore.Status = store.Completed },
		"another epoch":              func(p *store.RepairRequest) { p.Runs[0].StateBefore.Epoch.Nonce++ },
		"a count later":              func(p *store.RepairRequest) { p.Runs[0].StateBefore.Epoch.Count++ },
		"other control bits":         func(p *store.RepairRequest) { p.Runs[0].StateBefore.Control = store.PausedItself },
		"a checkpoint less":          func(p *store.RepairRequest) { p.Runs[0].CheckpointCount-- },
		"a checkpoint that is not":   func(p *store.RepairRequest) { p.Runs[0].KeptSteps = append(p.Runs[0].KeptSteps, "unknown") },
		"a child that is not":        func(p *store.RepairRequest) { p.Runs[0].DetachedChildren = []uuid.UUID{store.NewChildUUID(r.UUID)} },
		"a guard with another state": func(p *store.RepairRequest) { p.Guards = []store.ExpectedRunState{{Run: r.UUID}} },
	} {
		p := b.repairOf(r, 1, "first")
		change(p)
		before := fmt.Sprintf("%+v", b.row(r.UUID))
		wantOutcome(b, what, b.repair(p), store.Fenced)
		if after := fmt.Sprintf("%+v", b.row(r.UUID)); after != before {
			b.Errorf("%s: the run was changed", what)
		}
		b.wantNames(what, b.history(r.UUID), "fails", "first")
		if n := len(b.generations(r.UUID)); n != 0 {
			b.Errorf("%s: %d generations", what, n)
		}
	}
	b.wantRepaired(b.repairOf(r, 1, "first"))
}

// concurrently calls all functions at once, and waits for them.
func concurrently(all ...func()) {
	var wg sync.WaitGroup
	for _, f := range all {
		wg.Go(f)
	}
	wg.Wait()
}
