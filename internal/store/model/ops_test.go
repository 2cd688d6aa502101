//go:build model

package model_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/store/model"
)

// errLocked asks for another try of a batch of one.
var errLocked = errors.New("a row is locked by another transaction")

// objection is nil if nothing differs.
func objection(got, want any) error {
	if text := differ(got, want); text != "" {
		return errors.New("answer" + text)
	}
	return nil
}

// answering makes an op of a call whose answer is the same from the model.
func answering[A any](text string, do func(ctx context.Context, s store.Store) (A, error), want func(m *model.Model, contended bool) A) *op {
	return &op{
		text: text,
		do:   func(ctx context.Context, s store.Store) (any, error) { return do(ctx, s) },
		want: func(m *model.Model, got any, contended bool) error { return objection(got, want(m, contended)) },
	}
}

// commitOp commits a batch, a copy each time: answers are written into it.
func commitOp(b *store.Batch) *op {
	ends := func(run uuid.UUID) bool {
		for _, w := range b.Runs {
			if w.ID == run {
				return true
			}
		}
		return false
	}
	o := answering("commit "+show(b),
		func(ctx context.Context, s store.Store) (*store.Batch, error) {
			mine := copyBatch(b)
			if err := s.Commit(ctx, mine); err != nil {
				return nil, err
			}
			for _, w := range mine.Steps {
				if w.Outcome == store.Locked {
					return nil, errLocked
				}
			}
			for _, w := range mine.Runs {
				if w.Outcome == store.Locked {
					return nil, errLocked
				}
			}
			settledBatch(mine, ends)
			return mine, nil
		},
		func(m *model.Model, _ bool) *store.Batch {
			mine := copyBatch(b)
			m.Commit(mine)
			settledBatch(mine, ends)
			return mine
		})
	o.unlocked = len(b.Steps) > 0 && len(b.Starts) == 0
	return o
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
	for _, w := range b.Runs {
		own := *w
		c.Runs = append(c.Runs, &own)
	}
	return c
}

func claimOp(q store.ClaimQuery) *op {
	return &op{
		text: fmt.Sprintf("claim %v limit %d, suspects %d, crashes %d, at %s until %s", q.Pairs, q.Limit, q.Suspects, q.MaxCrashes, offset(q.Now), offset(q.LeaseUntil)),
		do:   func(ctx context.Context, s store.Store) (any, error) { return s.Claim(ctx, q) },
		want: func(m *model.Model, got any, contended bool) error {
			want, err := m.Claim(q, got.(store.Claims), contended)
			if err != nil {
				return err
			}
			return objection(got, want)
		},
	}
}

func renewOp(h store.Heartbeat) *op {
	return answering(fmt.Sprintf("renew %s until %s", showLeases(h.Leases), offset(h.LeaseUntil)),
		func(ctx context.Context, s store.Store) ([]uuid.UUID, error) {
			pulse, err := s.Renew(ctx, h)
			sortIDs(pulse.Lost)
			return pulse.Lost, err
		},
		func(m *model.Model, contended bool) []uuid.UUID {
			lost := m.Renew(h, contended)
			sortIDs(lost)
			return lost
		})
}

func expireOp(workers []uuid.UUID, q store.ClaimQuery) *op {
	return answering(fmt.Sprintf("expire %d workers, %v at %s until %s", len(workers), q.Pairs, offset(q.Now), offset(q.LeaseUntil)),
		func(ctx context.Context, s store.Store) (int, error) { return s.Expire(ctx, workers, q) },
		func(m *model.Model, contended bool) int { return m.Expire(workers, q, contended) })
}

func orderOp(o store.Order) *op {
	verbs := map[store.Verb]string{store.VerbPause: "pause", store.VerbResume: "resume", store.VerbCancel: "cancel"}
	return answering(fmt.Sprintf("%s (scope %d, freeze %v) %s at %s", verbs[o.Verb], o.Scope, o.Freeze, showIDs(o.Runs), offset(o.Now)),
		func(ctx context.Context, s store.Store) ([]store.OrderAnswer, error) {
			mine := o
			err := s.Order(ctx, &mine)
			return mine.Answers, err
		},
		func(m *model.Model, _ bool) []store.OrderAnswer {
			mine := o
			m.Order(&mine)
			return mine.Answers
		})
}

func newsOp(worker uuid.UUID, held []store.Lease) *op {
	return answering("news of "+showLeases(held),
		func(ctx context.Context, s store.Store) (store.News, error) {
			news, err := s.News(ctx, worker, held)
			return settledNews(news), err
		},
		func(m *model.Model, contended bool) store.News { return settledNews(m.News(worker, held, contended)) })
}

func tagOp(run uuid.UUID, tags []store.Tag) *op {
	return answering(fmt.Sprintf("tag %s %v", shorten(run), tags),
		func(ctx context.Context, s store.Store) (bool, error) { return s.Tag(ctx, run, tags) },
		func(m *model.Model, _ bool) bool { return m.Tag(run, tags) })
}

func getOp(refs []store.Ref) *op {
	return answering(fmt.Sprintf("get %q", refs),
		func(ctx context.Context, s store.Store) ([]*store.Run, error) { return s.Get(ctx, refs) },
		func(m *model.Model, _ bool) []*store.Run { return m.Get(refs) })
}

func listOp(f store.Filter, before uuid.UUID, limit int) *op {
	return answering(fmt.Sprintf("list %+v below %s, %d", f, shorten(before), limit),
		func(ctx context.Context, s store.Store) ([]*store.Run, error) { return s.List(ctx, f, before, limit) },
		func(m *model.Model, _ bool) []*store.Run { return m.List(f, before, limit) })
}

func treeOp(run uuid.UUID) *op {
	return answering("tree of "+shorten(run),
		func(ctx context.Context, s store.Store) ([]*store.Run, error) { return s.Tree(ctx, run) },
		func(m *model.Model, _ bool) []*store.Run { return m.Tree(run) })
}

func countsOp(run uuid.UUID) *op {
	return answering("counts of "+shorten(run),
		func(ctx context.Context, s store.Store) (map[store.Status]int, error) { return s.Counts(ctx, run) },
		func(m *model.Model, _ bool) map[store.Status]int { return m.Counts(run) })
}

// eventsOp reads from an event that was told before, a few at a time.
func eventsOp(told []store.Event, from, limit int) *op {
	after := ""
	if from > 0 {
		after = told[from-1].Cursor
	}
	want := told[from:min(from+limit, len(told))]
	return answering(fmt.Sprintf("%d events after %d", limit, from),
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
		words[i] = fmt.Sprintf("%s@%d", shorten(l.Run), l.Epoch)
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
			under = fmt.Sprintf(" under %s@%d", shorten(r.Parent.UUID), w.ParentEpoch)
		}
		words = append(words, fmt.Sprintf("start %s %q%s %s wakes %s tags %v", shorten(r.ID), r.Name, under, r.Status, offset(r.WakeAt), w.Tags))
	}
	for _, w := range b.Steps {
		words = append(words, fmt.Sprintf("%s exists:%v", showStep(&w.Step), w.Exists))
	}
	for _, w := range b.Receives {
		words = append(words, fmt.Sprintf("receive %q in %s", w.Signal, showStep(&w.Step)))
	}
	for _, w := range b.Signals {
		words = append(words, fmt.Sprintf("signal #%d %q key %q to %s at %s", number(w.ID), w.Name, w.Key, shorten(w.Run), offset(w.CreatedAt)))
	}
	for _, w := range b.Runs {
		words = append(words, fmt.Sprintf("end %s@%d as %s at %s wakes %s", shorten(w.ID), w.Epoch, w.Status, offset(w.Now), offset(w.WakeAt)))
	}
	return strings.Join(words, "; ")
}

func showStep(s *store.Step) string {
	return fmt.Sprintf("%s %q of %s@%d %s %d output %s", s.Kind, s.Name, shorten(s.RunID), s.Epoch, s.Status, s.Attempt, payload(s.Output))
}
