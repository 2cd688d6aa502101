package model_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/store/model"
)

// errLocked asks for another try of a batch.
var errLocked = errors.New("a row is locked by another transaction")

// objection is nil if nothing differs.
func objection(got, want any) error {
	if text := differ(got, want); text != "" {
		return errors.New("answer" + text)
	}
	return nil
}

// opReturning makes an op of a call whose result must be the same as the result of the model.
func opReturning[A any](text string, do func(ctx context.Context, s store.Store) (A, error), want func(m *model.Model, contended bool) A) *op {
	return &op{
		text: text,
		do:   func(ctx context.Context, s store.Store) (any, error) { return do(ctx, s) },
		want: func(m *model.Model, got any, contended bool) error { return objection(got, want(m, contended)) },
	}
}

// commitOp commits a batch, a copy each time: outcomes are written into it.
func commitOp(b *store.Batch) *op {
	ends := func(run uuid.UUID) bool {
		for _, w := range b.OwnershipEnds {
			if w.UUID == run {
				return true
			}
		}
		return false
	}
	return &op{
		text: "commit " + show(b), unlocked: len(b.Steps) > 0 && len(b.Starts) == 0,
		do: func(ctx context.Context, s store.Store) (any, error) {
			mine := copyBatch(b)
			if err := s.Commit(ctx, mine); err != nil {
				return nil, err
			}
			if locked(mine) {
				return nil, errLocked
			}
			settledBatch(mine, ends)
			return mine, nil
		},
		want: func(m *model.Model, got any, contended bool) error {
			mine := copyBatch(b)
			m.Commit(mine)
			settledBatch(mine, ends)
			if contended {
				doubt(m, got.(*store.Batch), mine)
			}
			return objection(got, mine)
		},
	}
}

// doubt takes over what a store told of runs, and leaves it to be looked at when all that
// went on meanwhile is known.
func doubt(m *model.Model, got, want *store.Batch) {
	later := func(run uuid.UUID, same bool, told store.RunState, w *store.RunState, settled func(store.RunState) store.RunState) {
		if same && told != *w {
			*w = told
			m.Conditions = append(m.Conditions, func(m *model.Model) bool { return settled(m.RunState(run)) == told })
		}
	}
	for i, w := range want.Starts {
		if had := got.Starts[i].ExistingRun; had != nil && w.ExistingRun != nil && had.UUID == w.ExistingRun.UUID {
			w.ExistingRun = had
			m.Conditions = append(m.Conditions, func(m *model.Model) bool {
				r := m.Runs[had.UUID]
				return r != nil && (differ(*had, r.Run) == "" || differ(*had, store.Run{UUID: had.UUID}) == "")
			})
		}
	}
	for i, w := range want.Steps {
		if row := got.Steps[i].RecordedStep; row != nil && w.RecordedStep != nil {
			w.RecordedStep = row
			m.Conditions = append(m.Conditions, func(m *model.Model) bool {
				r := m.Runs[row.Run]
				return r != nil && differ(*row, r.Steps[row.Name]) == ""
			})
		}
	}
	as := func(s store.RunState) store.RunState { return s }
	for i, w := range want.Starts {
		later(w.Run.Parent.UUID, w.Outcome == got.Starts[i].Outcome, got.Starts[i].RunState, &w.RunState, as)
	}
	for i, w := range want.Steps {
		later(w.Step.Run, w.Outcome == got.Steps[i].Outcome, got.Steps[i].RunState, &w.RunState, func(s store.RunState) store.RunState {
			return settledState(w.Outcome, s, w.Step.Epoch, false)
		})
	}
	for i, w := range want.Receives {
		later(w.Step.Run, w.Outcome == got.Receives[i].Outcome, got.Receives[i].RunState, &w.RunState, func(s store.RunState) store.RunState {
			return settledState(w.Outcome, s, w.Step.Epoch, false)
		})
	}
	for i, w := range want.Signals {
		later(w.Run, w.Outcome == got.Signals[i].Outcome, got.Signals[i].RunState, &w.RunState, as)
	}
	for i, w := range want.OwnershipEnds {
		later(w.UUID, w.Outcome == got.OwnershipEnds[i].Outcome, got.OwnershipEnds[i].RunState, &w.RunState, as)
	}
}

// locked reports whether any item is to be tried again.
func locked(b *store.Batch) bool {
	return slices.ContainsFunc(b.Starts, func(w *store.StartWrite) bool { return w.Outcome == store.Locked }) ||
		slices.ContainsFunc(b.Steps, func(w *store.StepWrite) bool { return w.Outcome == store.Locked }) ||
		slices.ContainsFunc(b.Receives, func(w *store.ReceiveWrite) bool { return w.Outcome == store.Locked }) ||
		slices.ContainsFunc(b.Signals, func(w *store.SignalWrite) bool { return w.Outcome == store.Locked }) ||
		slices.ContainsFunc(b.OwnershipEnds, func(w *store.OwnershipEnd) bool { return w.Outcome == store.Locked })
}

func copyBatch(b *store.Batch) *store.Batch {
	c := new(store.Batch)
	for _, w := range b.Starts {
		own := *w
		c.Starts = append(c.Starts, &own)
	}
	for _, w := range b.Steps {
		own := *w
		c.Steps = append(c.Steps, &own)
	}
	for _, w := range b.Receives {
		own := *w
		c.Receives = append(c.Receives, &own)
	}
	for _, w := range b.Signals {
		own := *w
		c.Signals = append(c.Signals, &own)
	}
	for _, w := range b.OwnershipEnds {
		own := *w
		c.OwnershipEnds = append(c.OwnershipEnds, &own)
	}
	return c
}

func claimOp(q store.ClaimQuery) *op {
	return &op{
		unlocked: true,
		text:     fmt.Sprintf("claim %+v limit %d, suspects %d, crashes %d, at %s until %s", q.Filter, q.Limit, q.MaxSuspects, q.MaxCrashes, offset(q.Now), offset(q.LeaseUntil)),
		do:       func(ctx context.Context, s store.Store) (any, error) { return s.Claim(ctx, q) },
		want: func(m *model.Model, got any, contended bool) error {
			want, err := m.Claim(q, got.(store.ClaimResult), contended)
			if err != nil {
				return err
			}
			return objection(got, want)
		},
	}
}

func heldByOp(q store.ClaimQuery) *op {
	sorted := func(leases []store.Lease) []store.Lease {
		slices.SortFunc(leases, func(l, r store.Lease) int { return bytes.Compare(l.Run[:], r.Run[:]) })
		return leases
	}
	return opReturning(fmt.Sprintf("held by nonce %d until %s", q.EpochNonce, offset(q.LeaseUntil)),
		func(ctx context.Context, s store.Store) ([]store.Lease, error) {
			leases, err := s.LeasesOfClaim(ctx, q)
			return sorted(leases), err
		},
		func(m *model.Model, _ bool) []store.Lease { return sorted(m.LeasesOfClaim(q)) })
}

func renewOp(h store.Heartbeat) *op {
	return &op{
		text: fmt.Sprintf("renew %s until %s", showLeases(h.Leases), offset(h.LeaseUntil)),
		do: func(ctx context.Context, s store.Store) (any, error) {
			pulse, err := s.RenewLeases(ctx, h)
			sortIDs(pulse.LostRuns)
			return pulse.LostRuns, err
		},
		want: func(m *model.Model, got any, contended bool) error {
			lost := m.Renew(h, contended)
			if contended { // which are lost is looked up when the others are extended
				told := got.([]uuid.UUID)
				for _, l := range h.Leases {
					was, is := slices.Contains(lost, l.Run), slices.Contains(told, l.Run)
					if was != is {
						m.Conditions = append(m.Conditions, func(m *model.Model) bool { return m.HoldsLease(h.Worker.ID, l) != is })
					}
				}
				lost = told
			}
			sortIDs(lost)
			return objection(got, lost)
		},
	}
}

func expireOp(workers []uuid.UUID, q store.ClaimQuery) *op {
	return opReturning(fmt.Sprintf("expire %d workers at %s until %s", len(workers), offset(q.Now), offset(q.LeaseUntil)),
		func(ctx context.Context, s store.Store) (int, error) { return s.EndLeases(ctx, workers, q) },
		func(m *model.Model, contended bool) int { return m.EndLeases(workers, q, contended) })
}

func orderOp(o store.ControlRequest) *op {
	verbs := map[store.ControlVerb]string{store.VerbPause: "pause", store.VerbResume: "resume", store.VerbCancel: "cancel", store.VerbTerminate: "terminate"}
	return opReturning(fmt.Sprintf("%s (scope %d, freeze %v) %s at %s", verbs[o.Verb], o.Scope, o.ShiftTimers, showIDs(o.Runs), offset(o.Now)),
		func(ctx context.Context, s store.Store) ([]store.ControlResult, error) {
			mine := o
			err := s.ControlRuns(ctx, &mine)
			return mine.Results, err
		},
		func(m *model.Model, _ bool) []store.ControlResult {
			mine := o
			m.Control(&mine)
			return mine.Results
		})
}

func deadlineOp(d store.DeadlineChangeRequest) *op {
	return opReturning(fmt.Sprintf("deadline of %s to %s at %s", shorten(d.Run), offset(d.NewDeadline), offset(d.Now)),
		func(ctx context.Context, s store.Store) (store.DeadlineChangeRequest, error) {
			mine := d
			err := s.SetDeadline(ctx, &mine)
			return mine, err
		},
		func(m *model.Model, _ bool) store.DeadlineChangeRequest {
			mine := d
			m.SetDeadline(&mine)
			return mine
		})
}

func newsOp(worker uuid.UUID, held []store.Lease) *op {
	return opReturning("news of "+showLeases(held),
		func(ctx context.Context, s store.Store) (store.OwnedRunChanges, error) {
			news, err := s.OwnedRunChanges(ctx, worker, held)
			return settledOwnedRunChanges(news), err
		},
		func(m *model.Model, contended bool) store.OwnedRunChanges {
			return settledOwnedRunChanges(m.OwnedRunChanges(worker, held, contended))
		})
}

func tagOp(run uuid.UUID, tags []store.Tag, epoch store.Epoch, by store.ActorAndReason) *op {
	return opReturning(fmt.Sprintf("tag %s %v at %v by %v", shorten(run), tags, epoch, by),
		func(ctx context.Context, s store.Store) (bool, error) { return s.SetTags(ctx, run, tags, epoch, by) },
		func(m *model.Model, _ bool) bool { return m.SetTags(run, tags, epoch, by) })
}

func unreceivedOp(runs []uuid.UUID) *op {
	return opReturning(fmt.Sprintf("unreceived signals of %v", runs),
		func(ctx context.Context, s store.Store) ([]store.SignalCount, error) {
			return s.CountUnreceivedSignals(ctx, runs)
		},
		func(m *model.Model, _ bool) []store.SignalCount { return m.CountUnreceivedSignals(runs) })
}

func getOp(refs []store.RunRef) *op {
	return opReturning(fmt.Sprintf("get %q", refs),
		func(ctx context.Context, s store.Store) ([]*store.Run, error) { return s.GetRuns(ctx, refs) },
		func(m *model.Model, _ bool) []*store.Run { return m.Get(refs) })
}

func findOp(refs []store.RunRef, with store.PayloadSelection) *op {
	return opReturning(fmt.Sprintf("find %q with %d", refs, with),
		func(ctx context.Context, s store.Store) ([]*store.Run, error) {
			return s.GetRunsSelectingPayloads(ctx, refs, with)
		},
		func(m *model.Model, _ bool) []*store.Run { return m.Find(refs, with) })
}

func statusesOp(runs []uuid.UUID) *op {
	return opReturning("statuses of "+showIDs(runs),
		func(ctx context.Context, s store.Store) ([]store.Status, error) { return s.Statuses(ctx, runs) },
		func(m *model.Model, _ bool) []store.Status { return m.Statuses(runs) })
}

func listOp(f store.Filter, before uuid.UUID, limit int) *op {
	return opReturning(fmt.Sprintf("list %+v below %s, %d", f, shorten(before), limit),
		func(ctx context.Context, s store.Store) ([]*store.Run, error) {
			return s.ListRuns(ctx, f, before, limit)
		},
		func(m *model.Model, _ bool) []*store.Run { return m.List(f, before, limit) })
}

func failuresOp(f store.Filter, examine, limit int) *op {
	return opReturning(fmt.Sprintf("failures %+v, %d of %d", f, limit, examine),
		func(ctx context.Context, s store.Store) ([]store.FailureGroup, error) {
			return s.FailureGroups(ctx, f, examine, limit)
		},
		func(m *model.Model, _ bool) []store.FailureGroup { return m.Failures(f, examine, limit) })
}

func treeOp(run uuid.UUID, allGenerations bool) *op {
	return opReturning(fmt.Sprintf("tree of %s, all generations: %v", shorten(run), allGenerations),
		func(ctx context.Context, s store.Store) ([]*store.Run, error) {
			return s.RunTree(ctx, run, allGenerations)
		},
		func(m *model.Model, _ bool) []*store.Run { return m.Tree(run, allGenerations) })
}

func countsOp(run uuid.UUID, now time.Time) *op {
	return opReturning("counts of "+shorten(run),
		func(ctx context.Context, s store.Store) (store.TreeCounts, error) {
			return s.RunTreeCounts(ctx, run, now)
		},
		func(m *model.Model, _ bool) store.TreeCounts { return m.TreeCounts(run, now) })
}

// eventsOp reads from an event that was told before, a few at a time.
func eventsOp(told []store.Event, from, limit int) *op {
	after := ""
	if from > 0 {
		after = told[from-1].Cursor
	}
	want := told[from:min(from+limit, len(told))]
	return opReturning(fmt.Sprintf("%d events after %d", limit, from),
		func(ctx context.Context, s store.Store) ([]store.Event, error) { return s.Events(ctx, after, limit) },
		func(*model.Model, bool) []store.Event { return want })
}

func showIDs(ids []uuid.UUID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = shorten(id)
	}
	return "[" + strings.Join(words, " ") + "]"
}

func showLeases(leases []store.Lease) string {
	words := make([]string, len(leases))
	for i, l := range leases {
		words[i] = fmt.Sprintf("%s@%s", shorten(l.Run), l.Epoch)
	}
	return "[" + strings.Join(words, " ") + "]"
}

// show tells a batch in a few words an item.
func show(b *store.Batch) string {
	var words []string
	for _, w := range b.Starts {
		r := &w.Run
		under := ""
		if r.Parent.Valid {
			under = fmt.Sprintf(" under %s@%s", shorten(r.Parent.UUID), w.ParentEpoch)
		}
		words = append(words, fmt.Sprintf("start %s %q%s %s wakes %s tags %v", shorten(r.UUID), r.Name, under, r.Status, offset(r.WakeAt), w.Tags))
	}
	for _, w := range b.Steps {
		words = append(words, fmt.Sprintf("%s exists:%v", showStep(&w.Step), w.RowExists))
	}
	for _, w := range b.Receives {
		words = append(words, fmt.Sprintf("receive %q in %s", w.Signal, showStep(&w.Step)))
	}
	for _, w := range b.Signals {
		words = append(words, fmt.Sprintf("signal #%d %q key %q to %s at %s arrives %s", number(w.ID), w.Name, w.Key, shorten(w.Run), offset(w.CreatedAt), offset(w.ArrivedAt)))
	}
	for _, w := range b.OwnershipEnds {
		words = append(words, fmt.Sprintf("end %s@%s as %s at %s wakes %s", shorten(w.UUID), w.Epoch, w.Status, offset(w.Now), offset(w.WakeAt)))
	}
	return strings.Join(words, "; ")
}

func showStep(s *store.Step) string {
	return fmt.Sprintf("%s %q of %s@%s %s %d output %s", s.Kind, s.Name, shorten(s.Run), s.Epoch, s.Status, s.Attempt, payload(s.Output))
}
