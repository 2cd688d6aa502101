package engine

import "github.com/seed8ec063be/durable/internal/store"

// Rows that are written in a transaction of the user do not pass through the engine's store. If the engine has a codec, the methods
// of this file encode the payloads of such rows.

// StartInTx calls the function insert with the rows of the new runs. The function insert writes the rows in the caller's
// transaction, and sets the outcomes of the starts.
func (e *Engine) StartInTx(starts []*store.StartWrite, insert func([]*store.StartWrite) error) error {
	if e.codecStore == nil {
		return insert(starts)
	}
	return e.codecStore.CommitStartsWith(starts, insert)
}

// SignalInTx calls the function insert with the row of the signal. The function insert writes the row in the caller's transaction,
// and sets the outcome of the signal.
func (e *Engine) SignalInTx(signal *store.SignalWrite, insert func(*store.SignalWrite) error) error {
	if e.codecStore == nil {
		return insert(signal)
	}
	return e.codecStore.CommitSignalWith(signal, insert)
}

// startWithKeyInTx does the same as StartInTx for a start with a start key.
func (e *Engine) startWithKeyInTx(c *store.StartKeyChangeRequest, insert func(*store.StartKeyChangeRequest) error) error {
	if e.codecStore == nil {
		return insert(c)
	}
	return e.codecStore.UpdateStartKeyRowWith(c, insert)
}
