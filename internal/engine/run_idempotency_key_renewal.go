package engine

import (
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// idempotencyKeyRenewals tells which steps of a run have idempotency keys of their own in this generation. It changes only while the
// history is read.
type idempotencyKeyRenewals struct {
	record.Renewal                 // zero: the run is in its first generation
	keyNames       map[string]bool // the stored names of Renewal.SameKey
	rerunItems     map[string]bool // the stored names of Renewal.RerunItems
	beganAt        time.Time       // when this generation was planned
	retryDueAt     time.Time       // when a run that retries itself continues; zero: at once
	decodeError    error           // why the record cannot be decoded; the run must then not be executed
}

// decodeRenewalRecord decodes the checkpoint of kind KindKeyRenewal.
func (n *idempotencyKeyRenewals) decodeRenewalRecord(row *store.Step) {
	r, err := record.DecodeRenewal(row.Output)
	if err != nil {
		n.decodeError = undecodableKeyRenewalError(row, err)
	}
	n.Renewal, n.beganAt, n.retryDueAt = r, row.StartedAt, row.NextAt
	n.keyNames, n.rerunItems = storedNames(r.SameKey), storedNames(r.RerunItems)
}

// storedNames returns the set of the stored names of calls whose names are given as people see them.
func storedNames(names []string) map[string]bool {
	stored := make(map[string]bool, len(names))
	for _, name := range names {
		stored[naming.ParseDisplay(name)] = true
	}
	return stored
}

func undecodableKeyRenewalError(row *store.Step, err error) error {
	return fmt.Errorf("%w: the record of renewed idempotency keys (%d bytes) does not decode: %w", store.ErrRejected, len(row.Output), err)
}

// runInKeyOf returns the part of a call's idempotency key that names the run: the UUID of the run and, if the call has a new key
// since a later generation, "#" and the number of that generation. The number does not stand behind the name of the call, because the
// first generation may have a call whose name ends in the same way.
func (r *run) runInKeyOf(name string) string {
	run := r.row.UUID.String()
	if r.keyRenewals.Generation == 0 {
		return run
	}
	return run + r.keyRenewals.KeyGeneration(naming.Display(name))
}

// runGeneration returns the number of the run's generation.
func (n *idempotencyKeyRenewals) runGeneration() int32 { return max(n.Generation, 1) }

// holdUnlessKeyRenewalsDecoded holds the run if the renewal record could not be decoded, so that it is not known which steps have new
// idempotency keys. It reports whether the run may be executed.
func (r *run) holdUnlessKeyRenewalsDecoded() bool {
	if r.keyRenewals.decodeError == nil {
		return true
	}
	r.holdWithReason("read the history of the run", "", r.keyRenewals.decodeError)
	return false
}
