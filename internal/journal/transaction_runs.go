package journal

import (
	"slices"

	"github.com/google/uuid"
)

// A worker releases a run by a write. As soon as that write is committed, another worker may claim
// the run and read its history. Two concurrent transactions can commit in either order. If one of
// them released a run and the other added a checkpoint to it, the next owner could read the history
// before the checkpoint is committed, and execute the step a second time. Therefore the journal
// never executes a release concurrently with another write of the same run, unless both are in one
// transaction.

// transactionRuns lists the runs that an uncommitted transaction releases or adds history to.
type transactionRuns struct {
	inUse              bool        // a writer uses this value
	runsWithNewHistory []uuid.UUID // runs to whose histories the transaction adds
	releasedRuns       []uuid.UUID // runs that the transaction releases
}

// addEntry adds the run of the entry to the lists.
func (f *transactionRuns) addEntry(e *Entry) {
	if run, leaves := e.releasedRun(); leaves {
		f.releasedRuns = append(f.releasedRuns, run)
	} else if run, records := e.runWithAddedHistory(); records {
		f.runsWithNewHistory = append(f.runsWithNewHistory, run)
	}
}

// clear empties the lists after the transaction has ended.
func (f *transactionRuns) clear() {
	f.runsWithNewHistory, f.releasedRuns = f.runsWithNewHistory[:0], f.releasedRuns[:0]
}

// conflictsWith reports whether the entry must not be written concurrently with the transaction.
func (f *transactionRuns) conflictsWith(e *Entry) bool {
	if run, leaves := e.releasedRun(); leaves {
		return slices.Contains(f.runsWithNewHistory, run)
	}
	if len(f.releasedRuns) == 0 {
		return false
	}
	run, records := e.runWithAddedHistory()
	return records && slices.Contains(f.releasedRuns, run)
}

// addWriter registers a writer and returns the value that lists the runs of its transactions. At
// most one other writer may be registered. The caller holds j.mu.
func (j *Journal) addWriter() *transactionRuns {
	j.activeWriters++
	own := &j.openTxRunsByWriter[0]
	if own.inUse {
		own = &j.openTxRunsByWriter[1]
	}
	own.inUse = true
	return own
}

// removeWriter unregisters a writer that has no transaction in progress. The caller holds j.mu.
func (j *Journal) removeWriter(own *transactionRuns) {
	own.inUse = false
	j.activeWriters--
	if j.closed && j.hasNoWriters() {
		close(j.writersDone)
	}
}

// hasNoWriters reports whether no transaction is in progress. The caller holds j.mu.
func (j *Journal) hasNoWriters() bool {
	return j.activeWriters == 0 && len(j.openSeparateTxRuns) == 0
}

// otherWriterRuns returns the runs in the transaction of the other writer, or empty lists if there is no other writer. The caller
// holds j.mu.
func (j *Journal) otherWriterRuns(own *transactionRuns) *transactionRuns {
	if own == &j.openTxRunsByWriter[0] {
		return &j.openTxRunsByWriter[1]
	}
	return &j.openTxRunsByWriter[0]
}
