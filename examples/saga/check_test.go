package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// books returns the correct ends of four orders: one order of each fate, and one that was withdrawn
// before it was charged.
func books() []end {
	at := func(id string, f fate, status durable.Status, err error, a account) end {
		return end{order: &order{Order: Order{ID: id}, fate: f}, run: &durable.RunInfo{ID: id, Status: status}, err: err, account: a}
	}
	yes := at("yes", approved, durable.StatusCompleted, nil, account{pathCharge: {"c1"}, pathReserve: {"r1"}, pathShip: {"s1"}})
	yes.receipt = Receipt{Charge: "c1", Reservation: "r1", Parcel: "s1", ApprovedBy: "alice"}
	no := at("no", refused, durable.StatusFailed, errRefused,
		account{pathCharge: {"c2"}, pathReserve: {"r2"}, pathRelease: {"l2"}, pathRefund: {"f2"}})
	gone := at("gone", withdrawn, durable.StatusCancelled, durable.ErrCancelled, account{pathCharge: {"c3"}, pathRefund: {"f3"}})
	early := at("early", withdrawn, durable.StatusCancelled, durable.ErrCancelled, nil)
	for _, e := range []end{gone, early} {
		e.run.Cancellation = &durable.Cancellation{Actor: "customer", Reason: "found it cheaper"}
	}
	return []end{yes, no, gone, early}
}

const (
	yes = iota
	no
	gone
)

func TestAuditOfGoodBooks(t *testing.T) {
	got := audit(books(), nil, 5)
	const line = "saga: orders=4 approved=1 refused=3 kills=5 charges_doubled=0 refunds_missing=0 stuck=0"
	if got.String() != line || got.verdict() != nil {
		t.Errorf("%v: %v", got, got.verdict())
	}
}

// TestAudit checks that the audit finds every kind of violation: each case gives it an incorrect
// ledger or end.
func TestAudit(t *testing.T) {
	for name, c := range map[string]struct {
		change func(ends []end)
		counts string // in the last line
		blame  string // in the verdict
	}{
		"an approved order is charged twice": {
			func(ends []end) { ends[yes].account[pathCharge] = []string{"c1", "c9"} },
			"charges_doubled=1 refunds_missing=0", "yes: it was charged 2 times",
		},
		"a refused order is charged twice and refunded once": {
			func(ends []end) { ends[no].account[pathCharge] = []string{"c2", "c9"} },
			"charges_doubled=1 refunds_missing=1", "no: it is refused, with 2 of /charge and 1 of /refund",
		},
		"a refund is missing": {
			func(ends []end) { delete(ends[no].account, pathRefund) },
			"charges_doubled=0 refunds_missing=1", "1 of /charge and 0 of /refund",
		},
		"a cancelled order's refund is missing": {
			func(ends []end) { delete(ends[gone].account, pathRefund) },
			"charges_doubled=0 refunds_missing=1", "gone: it is withdrawn",
		},
		"a release is missing": {
			func(ends []end) { delete(ends[no].account, pathRelease) },
			"refunds_missing=1", "1 of /reserve and 0 of /release",
		},
		"a refund too many": {
			func(ends []end) { ends[no].account[pathRefund] = []string{"f2", "f9"} },
			"refunds_missing=0", "1 of /charge and 2 of /refund",
		},
		"an approved order is refunded": {
			func(ends []end) { ends[yes].account[pathRefund] = []string{"f9"} },
			"refunds_missing=0", "has [f9] of /refund",
		},
		"an approved order is not shipped": {
			func(ends []end) { delete(ends[yes].account, pathShip) },
			"approved=1", "has [] of /ship",
		},
		"an approved order is shipped twice": {
			func(ends []end) { ends[yes].account[pathShip] = []string{"s1", "s9"} },
			"approved=1", "has [s1 s9] of /ship",
		},
		"a refused order is shipped": {
			func(ends []end) { ends[no].account[pathShip] = []string{"s9"} },
			"refused=3", "was shipped 1 times",
		},
		"a receipt of something else": {
			func(ends []end) { ends[yes].receipt.Charge = "c9" },
			"approved=1", "has [c1] of /charge, not [c9]",
		},
		"a refused order completed": {
			func(ends []end) { ends[no].run.Status, ends[no].err = durable.StatusCompleted, nil },
			"refused=2", "no: it was to be refused, and is completed",
		},
		"a refused order failed of something else": {
			func(ends []end) { ends[no].err = durable.ErrTimeout },
			"refused=2", "no: it was to be refused, and is failed",
		},
		"nobody knows who withdrew": {
			func(ends []end) { ends[gone].run.Cancellation = nil },
			"refused=3", "gone: it does not say who withdrew it",
		},
	} {
		ends := books()
		c.change(ends)
		got := audit(ends, nil, 5)
		if !strings.Contains(got.String(), c.counts) {
			t.Errorf("%s: %v, want %s", name, got, c.counts)
		}
		if err := got.verdict(); err == nil || !strings.Contains(err.Error(), c.blame) {
			t.Errorf("%s: the verdict is %v, want %q in it", name, err, c.blame)
		}
	}
}

// TestAuditFindsStuckRuns checks that a live run counts as stuck, be it the run of an order or a
// descendant.
func TestAuditFindsStuckRuns(t *testing.T) {
	ends := books()
	ends[yes].run.Status = durable.StatusWaiting
	live := []durable.RunInfo{*ends[yes].run, {ID: "parcel", Workflow: "ship", Status: durable.StatusPaused}}
	got := audit(ends, live, 5)
	if !strings.HasSuffix(got.String(), " approved=0 refused=3 kills=5 charges_doubled=0 refunds_missing=0 stuck=2") {
		t.Error(got)
	}
	err := got.verdict()
	for _, want := range []string{"2 runs have not ended", "yes: its run", "parcel: its run", "no order was approved", "are not the 4 orders"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the verdict is %v, want %q in it", err, want)
		}
	}
}

// TestVerdict checks that verdict also rejects counts without a violation that prove nothing.
func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		tally tally
		good  bool
	}{
		"as promised":      {tally{orders: 2, approved: 1, refused: 1, kills: 5}, true},
		"too few kills":    {tally{orders: 2, approved: 1, refused: 1, kills: 4}, false},
		"nothing approved": {tally{orders: 2, refused: 2, kills: 5}, false},
		"nothing refused":  {tally{orders: 2, approved: 2, kills: 5}, false},
		"one is nowhere":   {tally{orders: 3, approved: 1, refused: 1, kills: 5}, false},
		"doubled":          {tally{orders: 2, approved: 1, refused: 1, kills: 5, doubled: 1}, false},
		"missing":          {tally{orders: 2, approved: 1, refused: 1, kills: 5, missing: 1}, false},
		"stuck":            {tally{orders: 2, approved: 1, refused: 1, kills: 5, stuck: 1}, false},
		"blamed":           {tally{orders: 2, approved: 1, refused: 1, kills: 5, wrong: []error{errors.New("it")}}, false},
	} {
		if err := c.tally.verdict(); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPlan checks that each strike has an order of its own, with the fate that the strike needs,
// for every seed and for few orders.
func TestPlan(t *testing.T) {
	for seed := range uint64(200) {
		for _, n := range []int{len(plannedKills), 40, 101} {
			orders, strikes, err := plan(n, seed)
			if err != nil {
				t.Fatal(err)
			}
			fates := make(map[string]fate)
			for _, o := range orders {
				fates[o.ID] = o.fate
				if (o.held || o.contrary) && (o.fate == withdrawn || o.absent) {
					t.Fatalf("%+v is decided twice", o)
				}
			}
			placed := 0
			for _, k := range strikes {
				placed += len(k.place)
				if f, there := fates[k.order]; !there || f != k.fate {
					t.Fatalf("%+v has a victim that is %s", k, f)
				}
				delete(fates, k.order)
			}
			if placed != n {
				t.Fatalf("%d of %d orders are placed", placed, n)
			}
		}
	}
	if _, _, err := plan(len(plannedKills)-1, 1); err == nil {
		t.Error("a strike without a victim")
	}
}
