// Package bridge lets the packages postgres, sqlite and durablecli call unexported code of the root package. For the
// stores, its functions create the options with which Ctx.Step, Workflow.Start and Engine.Signal do their work in a
// transaction. The functions Tx, StartTx and SignalTx of the stores return these options to users. For the command line,
// Workflows tells which workflows an engine has.
//
// The root package sets the functions when it is initialized, before another package can call them.
package bridge

import (
	"context"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// Transact runs work in one transaction of s, writes the checkpoint w, which work fills in, in the same transaction,
// and commits. w.Outcome is the outcome; anything but Written means that the transaction was rolled back, because
// another process recorded the step or owns the run. An error, of work or of the database, also means that nothing was
// committed, unless it is store.ErrInDoubt. An error of work is returned as it is, or wrapped.
//
// Once COMMIT was sent, the end of ctx no longer says that nothing was committed: Transact then finds out, within
// [Outlast].
type Transact func(ctx context.Context, s store.Store, w *store.StepWrite, work func(context.Context) error) error

// InsertStarts writes starts in the caller's transaction on s, and sets their outcomes.
type InsertStarts func(ctx context.Context, s store.Store, starts []*store.StartWrite) error

// InsertWithStartKey makes a start with a start key, in the caller's transaction on s.
type InsertWithStartKey func(ctx context.Context, s store.Store, c *store.StartKeyChangeRequest) error

// InsertSignal writes a signal to the run to, in the caller's transaction on s, and sets the signal's outcome.
type InsertSignal func(ctx context.Context, s store.Store, to store.RunRef, signal *store.SignalWrite) error

// Workflow is a workflow of an engine.
type Workflow struct {
	Name       string
	Queue      string                   // with which it is defined; empty: none
	CheckInput func(input []byte) error // returns an error that wraps durable.ErrNotEncodable if the input does not decode into the workflow's type
}

var (
	// TxStep returns the durable.StepOption that makes a step transactional.
	TxStep func(Transact) any
	// StartTx returns the durable.StartOption that makes Workflow.Start use the functions.
	StartTx func(InsertStarts, InsertWithStartKey) any
	// SignalTx returns the durable.SignalOption that makes Engine.Signal use insert.
	SignalTx func(InsertSignal) any
	// Workflows returns the workflows of a *durable.Engine, in the order of Config.Workflows.
	Workflows func(engine any) []Workflow
)

type outlastKey struct{}

// WithOutlast returns a context whose [Outlast] is f.
func WithOutlast(ctx context.Context, f func(context.Context) (context.Context, context.CancelFunc)) context.Context {
	return context.WithValue(ctx, outlastKey{}, f)
}

// defaultOutlast bounds Outlast where no engine does.
const defaultOutlast = 10 * time.Second

// Outlast returns a context that goes on for a while after ctx has ended: for finding out what a COMMIT did that was
// sent before. The engine bounds it by Config.Patience, and by the time for which it may execute the run.
func Outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	if f, ok := ctx.Value(outlastKey{}).(func(context.Context) (context.Context, context.CancelFunc)); ok {
		return f(ctx)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), defaultOutlast)
}

type transactionKey struct{}

// WithTransaction returns a context that holds tx, for the function of a transactional step.
func WithTransaction(ctx context.Context, tx any) context.Context {
	return context.WithValue(ctx, transactionKey{}, tx)
}

// Transaction returns the transaction that ctx holds, or nil.
func Transaction(ctx context.Context) any { return ctx.Value(transactionKey{}) }
