package main

import (
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable"
)

// end holds how an order ended: in the database, and in the shop's ledger.
type end struct {
	order   *order
	run     *durable.RunInfo
	receipt Receipt // of a completed run
	err     error   // of any other run, as a caller that waits for the result gets it
	account account
}

// tally holds the counts of the audit.
type tally struct {
	orders, approved, refused, kills int
	doubled                          int // orders that were charged twice
	missing                          int // refused or withdrawn orders with an effect that was not undone
	stuck                            int // runs that have not ended
	wrong                            []error
}

// audit compares the ends of all orders with their planned fates, and with the shop's ledger.
func audit(ends []end, live []durable.RunInfo, kills int) tally {
	t := tally{orders: len(ends), kills: kills, stuck: len(live)}
	for _, run := range live {
		t.blame(run.ID, "its run %s of workflow %s is still %s", run.RunID, run.Workflow, run.Status)
	}
	for _, e := range ends {
		a, id := e.account, e.order.ID
		if n := len(a[pathCharge]); n > 1 {
			t.doubled++
			t.blame(id, "it was charged %d times: %v", n, a)
		}
		switch {
		case e.run.Status == durable.StatusCompleted && e.order.fate == approved:
			t.approved++
			t.delivered(e)
		case e.run.Status == durable.StatusFailed && e.order.fate == refused && errors.Is(e.err, errRefused),
			e.run.Status == durable.StatusCancelled && e.order.fate == withdrawn && errors.Is(e.err, durable.ErrCancelled):
			t.refused++
			t.checkUndone(e)
		default:
			t.blame(id, "it was to be %s, and is %s: %v", e.order.fate, e.run.Status, e.err)
		}
	}
	return t
}

func (t *tally) blame(id, format string, args ...any) {
	t.wrong = append(t.wrong, fmt.Errorf("%s: %w", id, fmt.Errorf(format, args...)))
}

// delivered checks that an approved order was charged, reserved and shipped once each, and that the
// receipt has the numbers.
func (t *tally) delivered(e end) {
	numbers := map[string]string{pathCharge: e.receipt.Charge, pathReserve: e.receipt.Reservation, pathShip: e.receipt.Parcel}
	for _, path := range []string{pathCharge, pathReserve, pathShip, pathRefund, pathRelease} {
		want := []string{}
		if n, due := numbers[path]; due {
			want = append(want, n)
		}
		if got := e.account[path]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.blame(e.order.ID, "it was approved, and has %v of %s, not %v", got, path, want)
		}
	}
	if e.receipt.ApprovedBy == "" {
		t.blame(e.order.ID, "its receipt does not say who approved it")
	}
}

// checkUndone checks that each effect of a refused or withdrawn order was undone once.
func (t *tally) checkUndone(e end) {
	missing := false
	for undo, path := range undoes {
		did, undid := len(e.account[path]), len(e.account[undo])
		if did != undid {
			missing = missing || undid < did
			t.blame(e.order.ID, "it is %s, with %d of %s and %d of %s", e.order.fate, did, path, undid, undo)
		}
		if did > 1 || did == 0 && e.order.fate == refused {
			t.blame(e.order.ID, "it is %s after %d of %s", e.order.fate, did, path)
		}
	}
	if missing {
		t.missing++
	}
	if n := len(e.account[pathShip]); n > 0 {
		t.blame(e.order.ID, "it is %s, and was shipped %d times", e.order.fate, n)
	}
	if c := e.run.Cancellation; e.order.fate == withdrawn && (c == nil || c.Actor != "customer" || c.Reason == "") {
		t.blame(e.order.ID, "it does not say who withdrew it, and why: %+v", c)
	}
}

// String returns the last line that the command prints.
func (t tally) String() string {
	return fmt.Sprintf("saga: orders=%d approved=%d refused=%d kills=%d charges_doubled=%d refunds_missing=%d stuck=%d",
		t.orders, t.approved, t.refused, t.kills, t.doubled, t.missing, t.stuck)
}

// verdict returns an error with everything that is wrong, or nil.
func (t tally) verdict() error {
	wrong := t.wrong
	find := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	find(t.doubled > 0, "%d orders were charged twice", t.doubled)
	find(t.missing > 0, "%d orders lack a refund or a release", t.missing)
	find(t.stuck > 0, "%d runs have not ended", t.stuck)
	find(t.kills < 5, "only %d kills hit a worker", t.kills)
	find(t.approved == 0, "no order was approved")
	find(t.refused == 0, "no order was refused")
	find(t.approved+t.refused != t.orders, "%d approved and %d refused are not the %d orders", t.approved, t.refused, t.orders)
	return errors.Join(wrong...)
}
