package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

// boss is the parent's client of the database.
type boss struct {
	*durable.Engine
	store durable.Store
	book  *ledger
	order *durable.Workflow[plan, []string]

	mu    sync.Mutex
	sent  map[string]sending // what was sent, by run and step
	wrong []error            // answers that no call may have

	stop   context.CancelFunc
	posted sync.WaitGroup
}

// sending is one signal: when its sender first began to send it, and when that was first
// acknowledged.
type sending struct{ asked, acked time.Time }

func newBoss(ctx context.Context, p place, book *ledger) (*boss, error) {
	s, _, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	e, err := durable.New(s, durable.Config{Patience: 2 * time.Second})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	b := &boss{Engine: e, store: s, book: book, sent: make(map[string]sending), order: newPlayer(book, p.Folder).order}
	t, err := book.tail()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if _, err := killer(book).Start(ctx, e, 0, durable.ID(killerID)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	ctx, b.stop = context.WithCancel(ctx)
	b.posted.Go(func() { b.post(ctx, t) })
	return b, nil
}

// hang up ends the post.
func (b *boss) hangUp() {
	b.stop()
	b.posted.Wait()
}

func (b *boss) close() {
	b.hangUp()
	_ = b.store.Close() // all that counts was read
}

// retry calls do until the database has answered, and says how often that was.
func (b *boss) retry(ctx context.Context, do func() error) (tries int, err error) {
	for tries = 1; ; tries++ {
		err = do()
		if !errors.Is(err, durable.ErrUnavailable) || ctx.Err() != nil {
			return tries, err
		}
		if wait(ctx, 20*time.Millisecond) != nil {
			return tries, err
		}
	}
}

// until waits for a state of a run.
func (b *boss) until(ctx context.Context, id string, holds func(*durable.RunInfo) bool) error {
	for {
		var info *durable.RunInfo
		_, err := b.retry(ctx, func() (err error) {
			info, err = b.Get(ctx, id)
			return err
		})
		if err != nil {
			return err
		}
		if holds(info) {
			return nil
		}
		if wait(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("run %s is still %s (%s)", id, info.Status, info.Reason)
		}
	}
}

// complain notes an answer that no call may have.
func (b *boss) complain(what string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, fmt.Errorf("%s: %w", what, err))
}

// post reads the ledger, and sends every run what it waits for, in a while. Of those who wait only
// for some time, a third are sent nothing, and a third around the end of it.
func (b *boss) post(ctx context.Context, t *tail) {
	defer t.close()
	known := make(map[string]bool)
	r := rand.New(rand.NewPCG(1, 1))
	for wait(ctx, 10*time.Millisecond) == nil {
		entries, err := t.more()
		if err != nil {
			b.complain("read the ledger", err)
			return
		}
		for _, e := range entries {
			key := e.Run + "/" + e.Step
			if e.Kind != kToken || known[key] {
				continue
			}
			known[key] = true
			pause := time.Duration(r.IntN(300)) * time.Millisecond
			if e.Do == doWithin {
				switch r.IntN(3) {
				case 0:
					continue
				case 1:
					within, _ := time.ParseDuration(e.Value) // written by play
					pause = max(0, within-20*time.Millisecond+time.Duration(r.IntN(40))*time.Millisecond)
				}
			}
			b.posted.Go(func() {
				if wait(ctx, pause) == nil {
					b.send(ctx, e)
				}
			})
		}
	}
}

// send sends a run what one of its steps waits for.
func (b *boss) send(ctx context.Context, e entry) {
	payload, key := payloadFor(e.Run, e.Step), e.Run+"/"+e.Step
	b.mu.Lock()
	if b.sent[key].asked.IsZero() {
		b.sent[key] = sending{asked: time.Now()}
	}
	b.mu.Unlock()
	_, err := b.retry(ctx, func() error {
		if e.Do == doAwait {
			return b.Complete(ctx, e.Value, payload)
		}
		return b.Signal(ctx, e.Run, e.Step, payload, durable.SignalKey(e.Step))
	})
	switch {
	case err == nil:
		b.mu.Lock()
		if s := b.sent[key]; s.acked.IsZero() { // the same signal again is none
			b.sent[key] = sending{s.asked, time.Now()}
		}
		b.mu.Unlock()
	case errors.Is(err, durable.ErrState), ctx.Err() != nil: // it has ended
	default:
		b.complain("signal "+e.Run+"/"+e.Step, err)
	}
}

// payloadFor is the one payload that a step of a run is sent.
func payloadFor(run, step string) string { return "to " + run + "/" + step }
