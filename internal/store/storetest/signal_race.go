package storetest

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/testsize"
)

// pairSenders sends many signals through both handles while one receiver receives them. The signals
// of each sender arrive in the order in which they were sent.
func pairSenders(b *fixture, s store.Store) {
	const senders = 12
	each := testsize.Of(15, 5)
	r := b.commitRunningRun("")
	handles := []*fixture{b, b.through(s)}
	var sent atomic.Int32
	var got []string
	b.together(senders+1, func(i int) error {
		if i < senders {
			defer sent.Add(1)
			for k := range each {
				w := b.message(r.UUID, "paid", k)
				w.Payload = []byte(fmt.Sprintf("%02d-%02d", i, k))
				if err := handles[i%2].deliver(&store.Batch{Signals: []*store.SignalWrite{&w}}); err != nil {
					return err
				}
				if w.Outcome != store.Written {
					return fmt.Errorf("signal %s: %s", w.Payload, outcomeWords[w.Outcome])
				}
			}
			return nil
		}
		for {
			all := sent.Load() == senders // read before the receive that may find no signal
			rec := b.receive(r, fmt.Sprint("wait-", len(got)), "paid")
			if err := handles[len(got)%2].deliver(&store.Batch{Receives: []*store.ReceiveWrite{rec}}); err != nil {
				return err
			}
			switch {
			case rec.Outcome != store.Written:
				return fmt.Errorf("receive %d: %s", len(got), outcomeWords[rec.Outcome])
			case rec.RecordedStep.Status == store.StepCompleted:
				got = append(got, string(rec.RecordedStep.Output))
			case all:
				return nil
			}
		}
	})
	next := make(map[string]int)
	for _, text := range got {
		sender, k := text[:2], 0
		if _, err := fmt.Sscanf(text[3:], "%d", &k); err != nil || k != next[sender] {
			b.Errorf("received %s, want number %d of its sender", text, next[sender])
		}
		next[sender] = k + 1
	}
	if len(got) != senders*each {
		b.Errorf("received %d signals, %d were sent", len(got), senders*each)
	}
}

// raceWake sends a signal while a run receives, and then parks. Either the run has received the
// signal, or it is claimable and then receives it.
func raceWake(b *fixture, s store.Store) {
	other := b.through(s)
	for range testsize.Of(60, 20) {
		r := b.commitRunningRun("")
		rec, w, park := b.receive(r, "wait", "paid"), b.message(r.UUID, "paid", 0), b.park(r, time.Time{})
		b.together(2, func(i int) error {
			if i == 1 {
				return other.deliver(&store.Batch{Signals: []*store.SignalWrite{&w}})
			}
			if err := b.deliver(&store.Batch{Receives: []*store.ReceiveWrite{rec}}); err != nil || rec.RecordedStep.Status == store.StepCompleted {
				return err
			}
			return b.deliver(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{&park}})
		})
		wantOutcome(b, "the signal", w.Outcome, store.Written)
		if r.Epoch = epochAt(1); rec.RecordedStep.Status != store.StepCompleted {
			b.claimOne(b.query(b.afterStart(time.Minute)), r.UUID)
			r.Epoch = epochAt(2)
			b.wantSignalReceived("when woken", b.commitReceive(b.receive(r, "wait", "paid")), w.Payload)
		}
		b.commitOwnershipEnd(b.newCompletion(r.UUID, r.Epoch))
	}
}
