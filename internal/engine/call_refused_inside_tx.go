package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/stack"
	"github.com/seed8ec063be/durable/internal/store"
)

// ErrInsideTx is returned by an engine call that is made inside a transaction and would wait for that same transaction.
var ErrInsideTx = errors.New("durable: an engine call inside a transaction")

// A store with one writer lends the writer to a Tx step while the step's function runs. If the function
// makes an engine call that writes, or that waits for writes of others, the call would wait for the
// function itself until its context ends. The engine recognizes such calls by the context that the
// function received, and by the goroutine of the function.

// activeTx is a Tx step whose function is in progress.
type activeTx struct {
	task             *stepTask
	functionReturned atomic.Bool // the function has returned; goroutines that it started may still make calls
}

type txContextKey struct{}

// activeTransactions holds the Tx steps in progress in this process, by goroutine.
var activeTransactions struct {
	open atomic.Int32 // the number of entries; if it is zero, the map is not read
	by   sync.Map     // of *activeTx, by goroutine ID
}

// markInsideTx notes the transaction in the context for its function, and for the calling goroutine, until the
// caller calls the returned function.
func (t *stepTask) markInsideTx(ctx context.Context) (context.Context, func()) {
	if _, serial := t.r.e.rawStore.(store.SerialCommitter); !serial {
		return ctx, func() {}
	}
	x := &activeTx{task: t}
	self := stack.GoroutineID()
	before, nested := activeTransactions.by.Swap(self, x)
	activeTransactions.open.Add(1)
	return context.WithValue(ctx, txContextKey{}, x), func() {
		x.functionReturned.Store(true)
		activeTransactions.open.Add(-1)
		if nested { // before belongs to a transaction of another store
			activeTransactions.by.Store(self, before)
		} else {
			activeTransactions.by.Delete(self)
		}
	}
}

// CheckOutsideTx returns ErrInsideTx if the call is made inside the function of a Tx step on a store with a single writer. The
// argument call describes the call for the error.
func (e *Engine) CheckOutsideTx(ctx context.Context, call string) error {
	if activeTransactions.open.Load() == 0 {
		return nil
	}
	x, inside := ctx.Value(txContextKey{}).(*activeTx)
	if !inside || !x.blocksWriterOf(e) {
		own, _ := activeTransactions.by.Load(stack.GoroutineID())
		if x, inside = own.(*activeTx); !inside || !x.blocksWriterOf(e) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s inside Tx step %q of run %q: the step holds the only connection that writes, so the call would wait for itself: "+
		"use StartTx or SignalTx with the step's own transaction, or call the engine after the step",
		ErrInsideTx, call, naming.Display(x.task.name), x.task.r.row.NameOrUUID())
}

func (x *activeTx) blocksWriterOf(e *Engine) bool {
	return !x.functionReturned.Load() && x.task.r.e.rawStore == e.rawStore
}
