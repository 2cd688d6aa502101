package engine

import "github.com/seed8ec063be/durable/internal/store"

// What is written in a transaction of the user does not pass through the engine's store. The methods of this file encode it, if the
// engine has a codec.

// StartIn calls insert with the starts as they are stored. The function writes them in the caller's transaction, and sets their outcomes.
func (e *Engine) StartIn(starts []*store.StartWrite, insert func([]*store.StartWrite) error) error {
	if e.coded == nil {
		return insert(starts)
	}
	return e.coded.StartsWith(starts, insert)
}

// SignalIn calls insert with the signal as it is stored. The function writes it in the caller's transaction, and sets its outcome.
func (e *Engine) SignalIn(signal *store.SignalWrite, insert func(*store.SignalWrite) error) error {
	if e.coded == nil {
		return insert(signal)
	}
	return e.coded.SignalWith(signal, insert)
}

// foldIn does the same for a start that folds.
func (e *Engine) foldIn(c *store.FoldChange, insert func(*store.FoldChange) error) error {
	if e.coded == nil {
		return insert(c)
	}
	return e.coded.FoldWith(c, insert)
}
