package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/seed8ec063be/durable/internal/store"
)

// ErrInsideTx is returned by calls of an engine that would wait for the transaction they are made in.
var ErrInsideTx = errors.New("durable: an engine call inside a transaction")

// A store with one writer lends it to a Tx step for the time of its function. A call that writes, or
// that waits for the writes of others, would wait for the function that makes it, until its context
// ends. Such calls are told by the context that the function got, and by its goroutine.

// transaction is a Tx step's function under way.
type transaction struct {
	t    *task
	over atomic.Bool // the function may have left goroutines behind, which may call
}

type transactionKey struct{}

// transactions are those under way in this process, by goroutine.
var transactions struct {
	open atomic.Int32 // the map is looked at only if there are any
	by   sync.Map     // of *transaction
}

// entered notes the transaction in the context for its function, and for the calling goroutine, until
// the returned function is called.
func (t *task) entered(ctx context.Context) (context.Context, func()) {
	if _, serial := t.r.e.beneath.(store.SerialCommitter); !serial {
		return ctx, func() {}
	}
	x := &transaction{t: t}
	self := goroutine()
	before, nested := transactions.by.Swap(self, x)
	transactions.open.Add(1)
	return context.WithValue(ctx, transactionKey{}, x), func() {
		x.over.Store(true)
		transactions.open.Add(-1)
		if nested { // of another store
			transactions.by.Store(self, before)
		} else {
			transactions.by.Delete(self)
		}
	}
}

// Outside returns ErrInsideTx for a call, in words, that is made from inside a transaction which
// holds this store's only writer.
func (e *Engine) Outside(ctx context.Context, call string) error {
	if transactions.open.Load() == 0 {
		return nil
	}
	x, inside := ctx.Value(transactionKey{}).(*transaction)
	if !inside || !x.holds(e) {
		own, _ := transactions.by.Load(goroutine())
		if x, inside = own.(*transaction); !inside || !x.holds(e) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s inside Tx step %q of run %q: the step holds the only connection that writes, so the call would wait for itself: "+
		"use StartTx or SignalTx with the step's own transaction, or call the engine after the step",
		ErrInsideTx, call, Shown(x.t.name), x.t.r.row.Address())
}

func (x *transaction) holds(e *Engine) bool { return !x.over.Load() && x.t.r.e.beneath == e.beneath }
