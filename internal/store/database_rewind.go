package store

import "github.com/google/uuid"

// DatabaseRewind records that the database has gone back to an earlier point of its history, because a standby was promoted or a
// backup was restored.
type DatabaseRewind struct {
	PositionBefore, PositionAfter string // the positions in the database's log before and after, for the log
	OwnedRunCount                 int    // how many runs this process owned at that time
	LostRuns                      []LostRun
}

// LostRun is a run for which the database has lost acknowledged writes. The worker has released such a run, so that the run is replayed
// from the checkpoints that were not lost.
type LostRun struct {
	UUID         uuid.UUID
	Name         string
	RunMissing   bool     // the run itself was lost
	MissingSteps []string // names of the acknowledged checkpoints that were lost
}
