package engine

import (
	"context"
	"testing"

	"github.com/seed8ec063be/durable/internal/store"
)

// An ask whose caller is gone is not sent: it would be granted after the caller has given its permit back.
func TestAskOfALostCallerIsDropped(t *testing.T) {
	p := &permits{wanted: newNotifier()}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	a := &store.PermitAsk{Limit: "l", Step: "s", Attempt: 1}
	if err := p.ask(ctx, nil, a); err == nil {
		t.Fatal("the ask ends with its caller")
	}
	p.giveBack(nil, a)
	asks, returns, _ := p.take()
	if len(asks) != 0 || len(returns) != 1 {
		t.Errorf("%d asks and %d returns, want only the return", len(asks), len(returns))
	}
}
