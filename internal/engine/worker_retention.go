package engine

import (
	"github.com/seed8ec063be/durable/internal/retention"
	"github.com/seed8ec063be/durable/internal/store"
)

// newRetentionSweeper returns the Sweeper that deletes the rows that Config.Retention no longer keeps. serve executes its loop.
func (w *worker) newRetentionSweeper() *retention.Sweeper {
	_, serial := w.e.rawStore.(store.SerialCommitter)
	return retention.NewSweeper(retention.Config{
		Policy: &w.e.cfg.Retention, Store: w.e.store, StoreIsSerial: serial, Now: w.e.clock.Now, Log: w.log, Poll: w.e.cfg.Poll,
		StopIfFatal: w.stopIfFatal,
	})
}
