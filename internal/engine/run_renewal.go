package engine

import (
	"fmt"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// renewals tells which steps of a run have new idempotency keys, because they had completed before a repair of the run
// dropped them. It changes only while the history is read.
type renewals struct {
	since  map[string]int32 // the generation since which a step has a new key, by the name as users see it
	failed error            // the record does not decode, so the run must not be executed
}

// add reads the record.
func (n *renewals) add(row *store.Step) {
	r, err := record.DecodeRenewal(row.Output)
	if err != nil {
		n.failed = fmt.Errorf("%w: the record of renewed idempotency keys (%d bytes) does not decode: %w", store.ErrRejected, len(row.Output), err)
	}
	n.since = r.Since
}

// suffix returns what the key of a step has at its end: "#" and the number of a generation, or nothing.
func (n *renewals) suffix(name string) string {
	if len(n.since) == 0 {
		return ""
	}
	if g := n.since[naming.Display(name)]; g > 0 {
		return fmt.Sprintf("#%d", g)
	}
	return ""
}

// knowsRenewals reports whether the renewed steps are known. Otherwise it holds the run.
func (r *run) knowsRenewals() bool {
	if r.renewals.failed == nil {
		return true
	}
	r.suspendHeld("read the history of the run", "", r.renewals.failed)
	return false
}
