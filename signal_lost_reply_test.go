package durable_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// muteSignals is a store that commits signals, and loses the replies of the first ones.
type muteSignals struct {
	durable.Store
	lose int // so many replies are lost from now on
}

func (s *muteSignals) Commit(ctx context.Context, b *store.Batch) error {
	err := s.Store.Commit(ctx, b)
	if err == nil && len(b.Signals) > 0 && s.lose > 0 {
		s.lose--
		return store.ErrUnavailable
	}
	return err
}

// A signal whose reply is lost is sent again until Patience is over, also if it says who sends it: there is one signal then, and one
// event.
func TestASignalWhoseReplyIsLostIsSentOnce(t *testing.T) {
	onStores(t, func(t *testing.T, inner durable.Store) {
		ctx := within(t)
		s := &muteSignals{Store: inner}
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("paid") })
		e := engineOn(t, s)
		send := func(lose int, by ...durable.SignalOption) {
			t.Helper()
			s.lose = lose
			if err := e.Signal(ctx, "run", "paid", 7, by...); err != nil || s.lose != 0 {
				t.Fatalf("got %v, and %d replies were not lost", err, s.lose)
			}
		}
		read(w.Start(ctx, e, 1, durable.ID("run"), durable.Delay(time.Hour)))(t)
		send(2)
		send(2, durable.Actor("ann"), durable.Reason("by phone"))
		send(0, durable.Actor("bob"))
		if got := read(e.Get(ctx, "run"))(t).Unreceived["paid"]; got != 3 {
			t.Errorf("the run has %d signals, want 3", got)
		}
		var senders []string
		waitFor(t, func() bool { // events wait for older transactions of other tests
			senders = nil
			for _, event := range read(e.Events(ctx, durable.Page{}))(t) {
				senders = append(senders, event.Actor)
			}
			return slices.Contains(senders, "bob")
		})
		if !slices.Equal(senders, []string{"ann", "bob"}) {
			t.Errorf("events of signals by %q, want one by ann and one by bob", senders)
		}
	})
}
