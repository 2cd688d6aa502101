package main

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed8ec063be/durable"
)

const (
	heard    = 6  // signals that a talk receives before it completes
	clients  = 4  // that talk at the same time
	current  = 3  // runs that they talk to
	chatter  = 40 // operations after which a talk is left alone
	farewell = 5  // operations on a talk that was seen to have ended
)

// talk receives signals, and answers which and in what order.
var talk = durable.Define("talk", func(c *durable.Ctx, _ int) ([]string, error) {
	var all []string
	for i := range heard {
		word, err := c.Receive[string](fmt.Sprintf("word-%d", i), durable.OnSignal("word"))
		if err != nil {
			return nil, err
		}
		all = append(all, word)
	}
	return all, nil
})

// talks are several clients that do all sorts of things to the same few runs, and
// what they were answered.
type talks struct {
	boss  *boss
	seed  uint64
	began time.Time

	mu    sync.Mutex
	live  []*talked
	all   []*talked
	under sync.WaitGroup
}

// talked is one run with all operations on it.
type talked struct {
	id         string
	mu         sync.Mutex
	operations []porcupine.Operation
	words      int
	exists     bool // a start was acknowledged
	ended      int  // operations since it was seen to have ended
}

func newTalks(b *boss, seed uint64) *talks { return &talks{boss: b, seed: seed, began: time.Now()} }

// begin has the clients talk until ctx ends. The function answered waits for their last
// operations.
func (t *talks) begin(ctx context.Context) (done func() error) {
	for range current {
		t.renew(nil)
	}
	errs := make([]error, clients)
	life := context.WithoutCancel(ctx)
	for i := range clients {
		t.under.Go(func() {
			r := rand.New(rand.NewPCG(t.seed, 100+uint64(i)))
			for errs[i] == nil && wait(ctx, time.Duration(r.IntN(40))*time.Millisecond) == nil {
				errs[i] = t.say(life, i, r)
			}
		})
	}
	return func() error {
		t.under.Wait()
		return errors.Join(errs...)
	}
}

// renew puts a new run in the place of one that was talked to enough.
func (t *talks) renew(old *talked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := &talked{id: fmt.Sprintf("talk-%d", len(t.all))}
	t.all = append(t.all, fresh)
	if old == nil {
		t.live = append(t.live, fresh)
		return
	}
	for i, l := range t.live {
		if l == old {
			t.live[i] = fresh
		}
	}
}

// say does one operation to one of the live runs.
func (t *talks) say(ctx context.Context, client int, r *rand.Rand) error {
	t.mu.Lock()
	to := t.live[r.IntN(len(t.live))]
	t.mu.Unlock()
	var q question
	switch n := r.IntN(100); {
	case n < 10:
		q.Verb = verbStart
	case n < 45:
		q.Verb, q.Word = verbSignal, to.word(r)
	case n < 70:
		q.Verb = verbGet
	case n < 82:
		q.Verb = verbPause
	case n < 98:
		q.Verb = verbResume
	default:
		q.Verb = verbCancel
	}
	if _, err := t.ask(ctx, to, client, q); err != nil {
		return err
	}
	to.mu.Lock()
	enough := len(to.operations) >= chatter || to.ended >= farewell
	to.mu.Unlock()
	if enough {
		t.mu.Lock()
		current := false
		for _, l := range t.live {
			current = current || l == to
		}
		t.mu.Unlock()
		if current {
			t.renew(to)
		}
	}
	return nil
}

// word is what a signal says and its key: mostly new, now and then said before.
func (t *talked) word(r *rand.Rand) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.words > 0 && r.IntN(8) == 0 {
		return fmt.Sprintf("w%d", r.IntN(t.words))
	}
	t.words++
	return fmt.Sprintf("w%d", t.words-1)
}

// ask does an operation until the database has answered it, and notes both.
func (t *talks) ask(ctx context.Context, to *talked, client int, q question) (answer, error) {
	called := time.Since(t.began)
	var a answer
	tries, err := t.boss.retry(ctx, func() (err error) {
		a, err = t.do(ctx, to.id, q)
		return err
	})
	if err != nil {
		return a, fmt.Errorf("%s %s: %w", q.Verb, to.id, err)
	}
	a.Again = tries > 1
	to.mu.Lock()
	defer to.mu.Unlock()
	to.operations = append(to.operations, porcupine.Operation{
		ClientId: client, Input: q, Call: int64(called), Output: a, Return: int64(time.Since(t.began)),
	})
	to.exists = to.exists || a.Said == saidYes
	if a.Status.ended() {
		to.ended++
	}
	return a, nil
}

// do does an operation once.
func (t *talks) do(ctx context.Context, id string, q question) (a answer, err error) {
	switch q.Verb {
	case verbStart:
		_, err = talk.Start(ctx, t.boss.Engine, 0, durable.ID(id))
	case verbSignal:
		err = t.boss.Signal(ctx, id, "word", q.Word, durable.SignalKey(q.Word))
	case verbPause:
		_, err = t.boss.Pause(ctx, id)
	case verbResume:
		_, err = t.boss.Resume(ctx, id)
	case verbCancel:
		_, err = t.boss.Cancel(ctx, id)
	case verbGet:
		var info *durable.RunInfo
		if info, err = t.boss.Get(ctx, id); err == nil {
			a.Status = state(info.Status)
			if info.Status == durable.StatusCompleted {
				var out []string
				if err := json.Unmarshal(info.Output, &out); err != nil {
					return a, err
				}
				a.Words = fmt.Sprint(out)
			}
		}
	}
	var refused *durable.StateError
	switch {
	case errors.Is(err, durable.ErrNotFound):
		return answer{Said: saidAbsent}, nil
	case errors.As(err, &refused):
		return answer{Said: saidNo, Status: state(refused.Status)}, nil
	}
	a.Said = saidYes
	return a, err
}

// settle brings every talk to its end: resumed, and told as many words as it needs.
func (t *talks) settle(ctx context.Context) error {
	const last = clients // its number as a client
	for _, to := range t.all {
		if !to.exists {
			continue
		}
		for n := 0; ; n++ {
			a, err := t.ask(ctx, to, last, question{Verb: verbGet})
			if err != nil {
				return fmt.Errorf("I7: %w", err)
			}
			if a.Status.ended() {
				break
			}
			if a.Status == state(durable.StatusPaused) {
				_, err = t.ask(ctx, to, last, question{Verb: verbResume})
			} else if n <= heard+to.words {
				_, err = t.ask(ctx, to, last, question{Verb: verbSignal, Word: fmt.Sprintf("last%d", n)})
			}
			if err == nil {
				err = wait(ctx, 20*time.Millisecond)
			}
			if err != nil {
				return fmt.Errorf("I7: %s is still %s: %w", to.id, a.Status, err)
			}
		}
	}
	return nil
}
