package store

import "github.com/google/uuid"

// Rewind says that a database went on from another point of its history: a standby was promoted, or
// it was restored to an earlier time.
type Rewind struct {
	From, To string // where it was, and where it is
	Held     int    // runs that this process owned then
	Lost     []LostRun
}

// LostRun is a run of which the database lacks what was acknowledged. It was released, so that it is
// replayed from what is there.
type LostRun struct {
	ID    uuid.UUID
	Name  string
	Gone  bool     // the run itself is not there
	Steps []string // acknowledged checkpoints that are not there
}
