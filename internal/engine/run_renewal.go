package engine

import (
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// renewals tells which steps of a run have idempotency keys of their own in this generation. It changes only while the
// history is read.
type renewals struct {
	record.Renewal           // zero: the run is in its first generation
	dueAt          time.Time // when a run that retries itself continues; zero: at once
	failed         error     // the record does not decode, so the run must not be executed
}

// add reads the record.
func (n *renewals) add(row *store.Step) {
	r, err := record.DecodeRenewal(row.Output)
	if err != nil {
		n.failed = renewalError(row, err)
	}
	n.Renewal, n.dueAt = r, row.NextAt
}

func renewalError(row *store.Step, err error) error {
	return fmt.Errorf("%w: the record of renewed idempotency keys (%d bytes) does not decode: %w", store.ErrRejected, len(row.Output), err)
}

// suffix returns what the key of a step has at its end: "#" and the number of a generation, or nothing.
func (n *renewals) suffix(name string) string {
	if n.Generation == 0 {
		return ""
	}
	return n.Suffix(naming.Display(name))
}

// generation returns the number of the run's generation.
func (n *renewals) generation() int32 { return max(n.Generation, 1) }

// holdIfRenewalsUnknown reports whether the renewed steps are known. Otherwise it holds the run.
func (r *run) holdIfRenewalsUnknown() bool {
	if r.renewals.failed == nil {
		return true
	}
	r.suspendHeld("read the history of the run", "", r.renewals.failed)
	return false
}
