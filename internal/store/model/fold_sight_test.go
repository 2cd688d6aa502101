package model_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/startkey"
	"github.com/seed8ec063be/durable/internal/store"
)

// foldSight is what can be read of a key and its runs.
type foldSight struct {
	runs  map[uuid.UUID]*store.Run
	waits map[uuid.UUID]bool // the runs that are not released
	gone  map[uuid.UUID]bool // those of them that a newer start has replaced
	row   string             // the state of the row; empty: there is no row
	input string             // of the run that waits
}

func (s *foldSight) inOrder() []*store.Run {
	return slices.SortedFunc(maps.Values(s.runs), func(a, b *store.Run) int { return bytes.Compare(a.UUID[:], b.UUID[:]) })
}

// live returns the run that has begun or may begin.
func (s *foldSight) live() (id uuid.UUID) {
	for _, r := range s.inOrder() {
		if !r.Status.IsTerminal() && !s.waits[r.UUID] {
			id = r.UUID
		}
	}
	return id
}

// waiting returns the run that is not released, and that no newer start has replaced.
func (s *foldSight) waiting() (id uuid.UUID) {
	for _, r := range s.inOrder() {
		if !r.Status.IsTerminal() && s.waits[r.UUID] && !s.gone[r.UUID] {
			id = r.UUID
		}
	}
	return id
}

// newest returns the run that a start joins.
func (s *foldSight) newest() uuid.UUID {
	if id := s.waiting(); id != uuid.Nil {
		return id
	}
	return s.live()
}

// String returns a text in which the runs have their order.
func (s *foldSight) String() string {
	var words []string
	for _, r := range s.inOrder() {
		words = append(words, fmt.Sprintf("%s %s at %s unreleased %v control %d", shorten(r.UUID), r.Status, r.Epoch, s.waits[r.UUID], r.Control))
	}
	return fmt.Sprintf("[%s] input %q row %s", strings.Join(words, "; "), s.input, s.row)
}

func (f *foldCheck) key() store.StartKey {
	return store.StartKey{Workflow: foldWorkflow, Key: f.spec.Key, Kind: f.kind}
}

// read reads the key and its runs, and checks what always holds.
func (f *foldCheck) read() *foldSight {
	seen := &foldSight{runs: make(map[uuid.UUID]*store.Run), waits: maps.Clone(f.waits), gone: maps.Clone(f.gone)}
	s := f.bed.handles[0]
	runs, err := s.ListRuns(f.ctx, store.Filter{}, uuid.UUID{}, 1000)
	if err != nil {
		f.diverge("List: %v", err)
	}
	live := 0
	for _, r := range runs {
		seen.runs[r.UUID] = r
		if !r.Status.IsTerminal() && !seen.waits[r.UUID] {
			live++
		}
		if seen.waits[r.UUID] && r.Epoch.Count > 0 {
			f.diverge("%s was claimed before it was released", shorten(r.UUID))
		}
	}
	if live > 1 && f.kind == store.StartKeySingleton {
		f.diverge("%d runs are live: %s", live, seen)
	}
	err = s.UpdateStartKeyRow(f.ctx, &store.StartKeyChangeRequest{Key: f.key(), Plan: func(at store.StartKeySnapshot) *store.StartKeyWrite {
		if at.Row != nil {
			seen.row, seen.input = string(at.Row.State), string(at.Row.WaitingInput)
		}
		return nil
	}})
	if err != nil {
		f.diverge("UpdateStartKeyRow: %v", err)
	}
	if waits := seen.runs[seen.waiting()]; waits != nil && seen.input == "" && f.kind == store.StartKeyDebounce {
		found, err := s.GetRuns(f.ctx, []store.RunRef{{UUIDOrName: waits.UUID.String()}})
		if err != nil || found[0] == nil {
			f.diverge("Get: %v, %v", found, err)
		}
		seen.input = string(found[0].Input)
	}
	return seen
}

// single makes one call that nothing else meets.
func (f *foldCheck) single(text string, do call) {
	f.must(text, do)
	f.seen = f.read()
}

// look does what is due for the key, as each worker does.
func (f *foldCheck) look() {
	due, _, err := f.bed.handles[f.handle()].DueStartKeys(f.ctx, f.now, 10)
	if err != nil {
		f.diverge("DueStartKeys: %v", err)
	}
	for _, key := range due {
		for range 4 {
			l := &startkey.Check{Key: key, Now: f.now}
			f.single("a look", f.lookCall(l))
			if l.Err != nil {
				f.diverge("a look: %v", l.Err)
			}
			if r := f.runs[l.Released]; r != nil && f.kind == store.StartKeyDebounce && f.now.Before(r.due) {
				f.diverge("%s was released at %s, and is due at %s", shorten(l.Released), offset(f.now), offset(r.due))
			}
			if len(l.Cancels) == 0 {
				break
			}
			for _, id := range l.Cancels {
				if r := f.runs[id]; r == nil || !r.replaced {
					f.diverge("%s is to be cancelled, and no start replaces it", shorten(id))
				}
			}
			f.single(fmt.Sprintf("cancel %s", showIDs(l.Cancels)), func(ctx context.Context, s store.Store) error {
				return s.ControlRuns(ctx, &store.ControlRequest{Verb: store.VerbCancel, Runs: l.Cancels, Now: f.now, Error: []byte("replaced")})
			})
		}
	}
}

func (f *foldCheck) lookCall(l *startkey.Check) call {
	return func(ctx context.Context, s store.Store) error {
		err := s.UpdateStartKeyRow(ctx, l.ChangeRequest(false))
		if err == nil {
			delete(f.waits, l.Released)
		}
		return err
	}
}

// claim claims what is due. The run of debounced starts has the input of the last.
func (f *foldCheck) claim() {
	var got store.ClaimResult
	c := store.ClaimQuery{Worker: workers[0], EpochNonce: f.nonce(), Filter: served[0], Limit: 5, MaxSuspects: 1, Now: f.now, LeaseUntil: f.now.Add(1000 * time.Hour)}
	f.single("claim", func(ctx context.Context, s store.Store) (err error) {
		got, err = s.Claim(ctx, c)
		return err
	})
	for i := range got.Runs {
		r := &got.Runs[i].Run
		if own := f.runs[r.UUID]; own == nil || f.kind == store.StartKeyDebounce && !slices.Contains(own.inputs, string(r.Input)) {
			f.diverge("%s begins with the input %s: %+v", shorten(r.UUID), r.Input, own)
		}
	}
}

// changeRun ends, pauses, resumes, cancels or terminates a run, or lets it wait.
func (f *foldCheck) changeRun() (string, call) {
	var runs []*store.Run
	for _, r := range f.seen.inOrder() {
		if !r.Status.IsTerminal() {
			runs = append(runs, r)
		}
	}
	if len(runs) == 0 {
		return "nothing", func(context.Context, store.Store) error { return nil }
	}
	r := pick(f.check, "run", runs)
	if r.Status == store.Running && f.dice("leaves", 3) > 0 {
		w := store.OwnershipEnd{UUID: r.UUID, Now: f.now, Epoch: r.Epoch, Status: store.Waiting, WakeAt: f.now.Add(time.Second)}
		switch {
		case f.dice("ends", 3) == 0:
		case r.Control&store.CancelRequested != 0:
			w.Status, w.WakeAt, w.EndedAt = store.Cancelled, time.Time{}, f.now
		default:
			w.Status, w.WakeAt, w.EndedAt = store.Completed, time.Time{}, f.now
		}
		return f.end(w)
	}
	o := store.ControlRequest{
		Verb: pick(f.check, "verb", []store.ControlVerb{store.VerbPause, store.VerbPause, store.VerbResume, store.VerbResume, store.VerbCancel, store.VerbTerminate}),
		Runs: []uuid.UUID{r.UUID}, Now: f.now, Error: []byte("cancelled"),
	}
	own := f.runs[r.UUID]
	return fmt.Sprintf("verb %d for %s", o.Verb, shorten(r.UUID)), func(ctx context.Context, s store.Store) error {
		mine := o
		err := s.ControlRuns(ctx, &mine)
		if err == nil && o.Verb >= store.VerbCancel {
			own.ended = true
		}
		return err
	}
}

func (f *foldCheck) end(w store.OwnershipEnd) (string, call) {
	return fmt.Sprintf("%s becomes %s", shorten(w.UUID), w.Status), func(ctx context.Context, s store.Store) error {
		mine := w
		return commitNow(ctx, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{&mine}}, func() store.WriteOutcome { return mine.Outcome })
	}
}

// drain lets all runs end, and then forgets the key.
func (f *foldCheck) drain() {
	for round := 0; ; round++ {
		if round == 60 {
			f.diverge("runs wait for ever: %s", f.seen)
		}
		f.look()
		f.claim()
		live := false
		for _, r := range f.seen.inOrder() {
			live = live || !r.Status.IsTerminal()
			switch r.Status {
			case store.Paused:
				f.single("resume "+shorten(r.UUID), func(ctx context.Context, s store.Store) error {
					return s.ControlRuns(ctx, &store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{r.UUID}, Now: f.now})
				})
			case store.Running:
				w := store.OwnershipEnd{UUID: r.UUID, Now: f.now, Epoch: r.Epoch, Status: store.Completed, EndedAt: f.now}
				if r.Control&store.CancelRequested != 0 {
					w.Status = store.Cancelled
				}
				f.single(f.end(w))
			}
		}
		if !live {
			break
		}
		f.now = f.now.Add(time.Second)
	}
	for _, r := range f.seen.inOrder() {
		own := f.runs[r.UUID]
		if own == nil || r.Status == store.Cancelled && !own.replaced && !own.ended || r.Status != store.Cancelled && r.Epoch.Count == 0 {
			f.diverge("%s is %s, and was claimed %d times: %+v", shorten(r.UUID), r.Status, r.Epoch.Count, own)
		}
	}
	for range 3 {
		f.now = f.now.Add(startkey.KeepRowFor + time.Hour)
		f.look()
	}
	if f.seen.row != "" {
		f.diverge("the row stays: %s", f.seen)
	}
}
