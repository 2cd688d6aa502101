package engine

import (
	"fmt"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/store"
)

// A run needs its input and all its records. If this process cannot decode one of them, for example because its codec lacks a key,
// the run is held before its function is called: nothing is executed and nothing is compensated. This is no crash and not the fault
// of the code, so a worker claims the run again after each store.UncountedHoldDelay, without a limit, until a process that has the
// key continues it.

// noteUnreadablePayload records the first payload of the rows that cannot be decoded.
func (r *run) noteUnreadablePayload(rows []store.Step) {
	for i := range rows {
		if r.unreadablePayload != nil {
			return
		}
		r.unreadablePayload = checkStepDecodable(&rows[i])
	}
}

// checkStepDecodable returns why a payload of the row that a replay needs cannot be decoded, or nil.
func checkStepDecodable(row *store.Step) error {
	err := payload.Problem(row.Output)
	if err == nil {
		err = payload.Problem(row.Error)
	}
	if err != nil {
		err = fmt.Errorf("the record of %q: %w", naming.Display(row.Name), err)
	}
	return err
}

// holdUnlessPayloadsReadable holds the run if this process cannot decode a payload that it needs. It reports whether it can decode all of them.
func (r *run) holdUnlessPayloadsReadable() bool {
	if err := payload.Problem(r.row.Input); err != nil {
		r.unreadablePayload = fmt.Errorf("the input: %w", err)
	}
	if r.unreadablePayload == nil {
		return true
	}
	r.holdForUnreadablePayload(r.unreadablePayload)
	return false
}

// holdIfRowUnreadable holds the run and returns ErrSuspended if a payload of the row cannot be decoded.
func (r *run) holdIfRowUnreadable(row *store.Step) error {
	err := checkStepDecodable(row)
	if err == nil {
		return nil
	}
	r.holdForUnreadablePayload(err)
	return ErrSuspended
}

func (r *run) holdForUnreadablePayload(err error) {
	if r.preflightFindings != nil {
		r.preflightFindings.noteDivergence(&store.Divergence{Version: r.e.programVersionIfOrdered(), At: r.e.clock.Now(), Detail: shortenReason(unreadablePayloadText + err.Error())})
	}
	r.suspend(suspensionSpec{cause: ErrHeld, status: store.Pending, heldReason: shortenReason(unreadablePayloadText + err.Error()), unreadable: true})
}

const unreadablePayloadText = "a payload cannot be decoded: "
