package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/testsize"
)

var races = []test{
	{"one writer of a step wins", raceStep},
	{"one start of a name wins", raceStart},
	{"one finish of a run wins", raceFinish},
	{"claimers never share a run", raceClaim},
	{"a claim against the owner's last writes", raceTakeover},
	{"random batches never deadlock", raceBatches},
	{"the same batch in opposite orders", raceOrders},
}

// together calls work in n goroutines at the same time and waits for them. It fails the case if any
// of them returns an error.
func (b *fixture) together(n int, work func(i int) error) {
	b.Helper()
	var all sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-gate
			if err := work(i); err != nil {
				b.Errorf("goroutine %d: %v", i, err)
			}
		})
	}
	close(gate)
	all.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

func raceStep(b *fixture) {
	r := b.commitRunningRun("")
	for round := range 5 {
		name := fmt.Sprint("charge-", round)
		begun := round%2 == 1
		if begun {
			b.commitStep(b.startedMarker(r.UUID, epochAt(1), 1, name), false)
		}
		writes := make([]*store.StepWrite, 16)
		b.together(len(writes), func(i int) error {
			s := b.completed(r.UUID, epochAt(1), name)
			s.Attempt, s.Output = int32(i+1), []byte(fmt.Sprint(i))
			writes[i] = &store.StepWrite{Step: s, RowExists: begun && i%2 == 0}
			return b.settle(&store.Batch{Steps: writes[i : i+1]})
		})
		var winner *store.Step
		for _, w := range writes {
			if w.Outcome == store.Written {
				if winner != nil {
					b.Fatalf("attempts %d and %d of %s were both written", winner.Attempt, w.Step.Attempt, name)
				}
				winner = &w.Step
			}
		}
		if winner == nil {
			b.Fatalf("no attempt of %s was written", name)
		}
		for _, w := range writes {
			if w.Outcome != store.Written {
				wantOutcome(b, name, w.Outcome, store.AlreadyRecorded)
				wantRecorded(b, name, w.RecordedStep, *winner)
			}
		}
		wantFields(b, "history", b.history(r.UUID)[round], *winner)
	}
}

// settle commits a batch, and repeats the steps with the outcome Locked until there are none.
func (b *fixture) settle(batch *store.Batch) error {
	for {
		switch err := b.store.Commit(b.ctx, batch); {
		case errors.Is(err, store.ErrLocked):
			continue
		case err != nil:
			return err
		}
		locked := &store.Batch{}
		for _, w := range batch.Steps {
			if w.Outcome == store.Locked {
				locked.Steps = append(locked.Steps, w)
			}
		}
		if len(locked.Steps) == 0 {
			return nil
		}
		batch = locked
	}
}

// deliver commits a batch as the journal does. It repeats the call after ErrUnavailable, commits
// each item on its own after other errors, and repeats items with the outcome Locked until there
// are none.
func (b *fixture) deliver(batch *store.Batch) error {
	for {
		err := b.store.Commit(b.ctx, batch)
		switch {
		case err != nil && b.ctx.Err() != nil:
			return err
		case errors.Is(err, store.ErrUnavailable):
			continue
		case err != nil && batch.Len() == 1:
			return err
		case err != nil:
			for _, part := range splitByOutcome(batch, func(store.WriteOutcome) bool { return true }) {
				if err := b.deliver(part); err != nil {
					return err
				}
			}
			return nil
		}
		locked := splitByOutcome(batch, func(o store.WriteOutcome) bool { return o == store.Locked })
		for _, part := range locked {
			if err := b.deliver(part); err != nil {
				return err
			}
		}
		return nil
	}
}

// splitByOutcome returns a batch of its own for each item for whose outcome chosen returns true.
func splitByOutcome(batch *store.Batch, chosen func(store.WriteOutcome) bool) (parts []*store.Batch) {
	add := func(o store.WriteOutcome, part *store.Batch) {
		if chosen(o) {
			parts = append(parts, part)
		}
	}
	for _, w := range batch.Starts {
		add(w.Outcome, &store.Batch{Starts: []*store.StartWrite{w}})
	}
	for _, w := range batch.Steps {
		add(w.Outcome, &store.Batch{Steps: []*store.StepWrite{w}})
	}
	for _, w := range batch.Receives {
		add(w.Outcome, &store.Batch{Receives: []*store.ReceiveWrite{w}})
	}
	for _, w := range batch.Signals {
		add(w.Outcome, &store.Batch{Signals: []*store.SignalWrite{w}})
	}
	for _, w := range batch.OwnershipEnds {
		add(w.Outcome, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{w}})
	}
	return parts
}

func raceStart(b *fixture) {
	starts := make([]*store.StartWrite, 16)
	b.together(len(starts), func(i int) error {
		starts[i] = &store.StartWrite{Run: b.newRunningRun("order-42")}
		return b.store.Commit(b.ctx, &store.Batch{Starts: starts[i : i+1]})
	})
	first := b.get("order-42")[0]
	if first == nil {
		b.Fatal("no start was written")
	}
	for i, w := range starts {
		if w.Run.UUID == first.UUID {
			wantOutcome(b, fmt.Sprint("start ", i, ", the winner"), w.Outcome, store.Written)
			continue
		}
		wantOutcome(b, fmt.Sprint("start ", i), w.Outcome, store.AlreadyRecorded)
		if w.ExistingRun == nil {
			b.Errorf("start %d: no row is attached", i)
			continue
		}
		wantRun(b, fmt.Sprint("start ", i), *w.ExistingRun, *first)
	}
}

func raceFinish(b *fixture) {
	r := b.commitRunningRun("")
	writes := make([]*store.OwnershipEnd, 16)
	b.together(len(writes), func(i int) error {
		w := b.newCompletion(r.UUID, epochAt(1))
		w.Output = []byte(fmt.Sprint(i))
		writes[i] = &w
		return b.store.Commit(b.ctx, &store.Batch{OwnershipEnds: writes[i : i+1]})
	})
	got := b.row(r.UUID)
	for i, w := range writes {
		want := store.Fenced
		if string(w.Output) == string(got.Output) {
			want = store.Written
		}
		wantOutcome(b, fmt.Sprintf("finish %d, while the row has %s", i, got.Output), w.Outcome, want)
	}
}

func raceClaim(b *fixture) {
	const due = 200
	batch := &store.Batch{}
	for range due {
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: b.newPendingRun("", b.now)})
	}
	b.commit(batch)
	var mu sync.Mutex
	owners := make(map[uuid.UUID]uuid.UUID)
	var claimed atomic.Int32
	b.together(12, func(int) error {
		q := b.query(b.afterStart(time.Second))
		for q.Limit = 7; claimed.Load() < due; {
			got, err := b.store.Claim(b.ctx, q)
			if err != nil {
				return err
			}
			mu.Lock()
			for _, c := range got.Runs {
				if had, ok := owners[c.Run.UUID]; ok {
					b.Errorf("run %s was claimed by %s and by %s", c.Run.UUID, had, q.Worker)
				}
				owners[c.Run.UUID] = q.Worker
				claimed.Add(1)
			}
			mu.Unlock()
		}
		return nil
	})
	for _, w := range batch.Starts {
		got := b.row(w.Run.UUID)
		if got.Epoch != epochAt(1) || got.Owner != owner(owners[got.UUID]) {
			b.Errorf("run %s: epoch %s, owner %s, want 1 and %s", got.UUID, got.Epoch, show(got.Owner), owners[got.UUID])
		}
	}
}

// raceTakeover lets the owner of an expired lease end the run while another worker claims it. If
// the end is first, there is nothing to claim. If the claim is first, the end is fenced. A step in
// the batch of the end is recorded exactly if its outcome is Written.
func raceTakeover(b *fixture) {
	for range testsize.Of(40, 12) {
		r := b.newRunningRun("")
		r.WakeAt = b.now
		b.commitStart(r)
		end := b.newCompletion(r.UUID, epochAt(1))
		step := &store.StepWrite{Step: b.completed(r.UUID, epochAt(1), "last")}
		var claimed []store.ClaimedRun
		b.together(2, func(i int) error {
			if i == 0 {
				return b.settle(&store.Batch{Steps: []*store.StepWrite{step}, OwnershipEnds: []*store.OwnershipEnd{&end}})
			}
			got, err := b.store.Claim(b.ctx, b.query(b.now))
			claimed = got.Runs
			return err
		})
		row, history := b.row(r.UUID), b.history(r.UUID)
		switch end.Outcome {
		case store.Written:
			if len(claimed) != 0 || row.Status != store.Completed || row.Epoch != epochAt(1) {
				b.Errorf("the end was written: claimed %v, the row is %s at epoch %s", describeClaims(claimed), row.Status, row.Epoch)
			}
		case store.Fenced:
			if row.Status != store.Running || row.Epoch != epochAt(2) {
				b.Errorf("the end was fenced: the row is %s at epoch %s, want running at 2", row.Status, row.Epoch)
			}
			b.commitOwnershipEnd(b.newCompletion(r.UUID, row.Epoch)) // so that the next round claims its own run
		default:
			b.Errorf("the end returned %s", outcomeWords[end.Outcome])
		}
		if (len(history) == 1) != (step.Outcome == store.Written) {
			b.Errorf("the last step returned %s, and %d are recorded", outcomeWords[step.Outcome], len(history))
		}
	}
}

// raceBatches commits batches that overlap in runs, steps and starts, in any order, while leases of
// the same runs are renewed. Nothing may fail, and each row has one writer.
func raceBatches(b *fixture) {
	const writers, names = 64, 12
	rounds := testsize.Of(8, 2)
	live, doomed := make([]uuid.UUID, 10), make([]uuid.UUID, 40)
	for _, group := range [][]uuid.UUID{live, doomed} {
		for i := range group {
			group[i] = b.commitRunningRun("").UUID
		}
	}
	all := append(live[:len(live):len(live)], doomed...)
	var mu sync.Mutex
	written := make(map[string]store.Step)
	finished := make(map[uuid.UUID]string)
	record := func(by string, batch *store.Batch) {
		mu.Lock()
		defer mu.Unlock()
		for _, w := range batch.Steps {
			key := w.Step.Run.String() + w.Step.Name
			if had, ok := written[key]; ok && w.Outcome == store.Written {
				b.Errorf("step %s was written by %s and by %s", key, had.Output, w.Step.Output)
			}
			if w.Outcome == store.Written {
				written[key] = w.Step
			}
		}
		for _, w := range batch.OwnershipEnds {
			if had, ok := finished[w.UUID]; ok && w.Outcome == store.Written {
				b.Errorf("run %s was finished by %s and by %s", w.UUID, had, by)
			}
			if w.Outcome == store.Written {
				finished[w.UUID] = by
			}
		}
	}
	b.together(writers, func(i int) error {
		for round := range rounds {
			if i%8 == 0 {
				h := b.heartbeat()
				h.LeaseUntil = b.afterStart(time.Duration(round) * time.Hour)
				for _, at := range rand.Perm(len(all)) {
					h.Leases = append(h.Leases, store.Lease{Run: all[at], Epoch: epochAt(1)})
				}
				if _, err := b.store.RenewLeases(b.ctx, h); err != nil && !errors.Is(err, store.ErrLocked) { // the row of the one worker may be locked for long
					return fmt.Errorf("renew: %w", err)
				}
				continue
			}
			by := fmt.Sprintf("writer %d, round %d", i, round)
			batch := b.randomBatch(all, doomed, names, int32(i*rounds+round+1), by)
			if err := b.settle(batch); err != nil {
				return fmt.Errorf("commit: %w", err)
			}
			record(by, batch)
		}
		return nil
	})
	total := 0
	for _, run := range all {
		for _, s := range b.history(run) {
			total++
			want, ok := written[s.Run.String()+s.Name]
			if !ok {
				b.Errorf("the step %s of %s is there, and nobody was told that it was written", s.Name, s.Run)
				continue
			}
			wantFields(b, "step "+s.Name, s, want)
		}
	}
	if total != len(written) {
		b.Errorf("%d steps are there, %d returned Written", total, len(written))
	}
}

// randomBatch returns steps of many runs, ends of some runs, and starts with a few common names.
func (b *fixture) randomBatch(all, doomed []uuid.UUID, names int, attempt int32, by string) *store.Batch {
	batch := &store.Batch{}
	for _, at := range rand.Perm(len(all) * names)[:20] {
		s := b.completed(all[at/names], epochAt(1), fmt.Sprint("step-", at%names))
		s.Attempt, s.Output = attempt, []byte(by)
		batch.Steps = append(batch.Steps, &store.StepWrite{Step: s, RowExists: rand.IntN(4) == 0})
	}
	for _, at := range rand.Perm(len(doomed))[:2] {
		w := b.newCompletion(doomed[at], epochAt(1))
		w.Output = []byte(by)
		batch.OwnershipEnds = append(batch.OwnershipEnds, &w)
	}
	for _, at := range rand.Perm(20)[:3] {
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: b.newRunningRun(fmt.Sprint("common-", at))})
	}
	return batch
}

// raceOrders causes a deadlock in a store that locks rows in the order of the given items.
func raceOrders(b *fixture) {
	r := b.commitRunningRun("")
	const items = 60
	for round := range testsize.Of(20, 6) {
		b.together(4, func(i int) error {
			batch := new(store.Batch)
			for k := range items {
				if i%2 == 1 {
					k = items - 1 - k
				}
				if i < 2 {
					s := b.completed(r.UUID, epochAt(1), fmt.Sprint(round, "-", k))
					batch.Steps = append(batch.Steps, &store.StepWrite{Step: s})
				} else {
					root := b.newPendingRun(fmt.Sprint(r.UUID, "-", round, "-", k), b.now)
					batch.Starts = append(batch.Starts, &store.StartWrite{Run: root})
				}
			}
			return b.store.Commit(b.ctx, batch)
		})
	}
}
