package repair

import (
	"slices"
	"testing"

	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// raced returns a run in which the choice "first" has ended the branch "slow", whose child was cancelled for that, and whose step "torn"
// failed then.
func raced(t *testing.T, more ...string) *history {
	calls := append([]string{"child slow/kid started", "step slow/no failed", "step slow/torn failed", "step quick/done completed", "step price completed", "choice first completed"}, more...)
	h := failedRun(t, "", calls...).live()
	c := record.Choice{Won: []int{1}, Wanted: 1, Of: []string{"slow", "quick"}, Ended: []string{"slow"}}
	h.History[5].Output, _ = c.Encode()
	h.History[1].EndedAt = h.History[5].StartedAt.Add(-1)
	h.History[2].EndedAt = h.History[5].StartedAt.Add(1)
	h.child("slow/kid", store.Cancelled, `its branch was ended by the choice "first" of its parent`)
	return h
}

// Whatever repair drops a choice: what it ended in the branches of its losers is done again.
func TestADroppedChoiceRevivesItsLosers(t *testing.T) {
	for what, repair := range map[string]func(h *history, q *Request) (*Result, error){
		"fork": func(h *history, q *Request) (*Result, error) {
			q.From = "price"
			return PlanFork(&h.RunToRepair, q, nil)
		},
		"override": func(h *history, q *Request) (*Result, error) {
			return PlanOverride(&h.RunToRepair, q, "price", []byte(`1`))
		},
	} {
		t.Run(what, func(t *testing.T) {
			h := raced(t)
			h.History[4].Output = []byte(`2`)
			r := done(t)(repair(h, laterRequest()))
			if what == "fork" {
				want(t, "dropped", r.Detail.Dropped, "slow/kid", "slow/torn", "price", "first")
			} else {
				want(t, "dropped", r.Detail.Dropped, "slow/kid", "slow/torn", "first")
			}
			if len(r.Repair.DetachedChildren) != 1 || r.Repair.DetachedChildren[0] != h.Children[0].UUID {
				t.Errorf("detached %v, want the cancelled child of the loser", r.Repair.DetachedChildren)
			}
		})
	}
	h := raced(t)
	q := laterRequest()
	q.From = "price"
	_, d, err := CopyHistory(&h.RunToRepair, q, nil)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "dropped of a copy", d.Dropped, "slow/kid", "slow/torn", "price", "first")
}

// A branch that a kept choice ended too stays ended.
func TestABranchThatAnotherChoiceEndedStaysEnded(t *testing.T) {
	h := raced(t, "choice again completed")
	c := record.Choice{Won: []int{1}, Wanted: 1, Of: []string{"slow", "quick"}, Ended: []string{"slow"}}
	h.History[6].Output, _ = c.Encode()
	h.History[6].Seq = 1
	q := laterRequest()
	q.From = "price"
	r := done(t)(PlanFork(&h.RunToRepair, q, nil))
	want(t, "dropped", r.Detail.Dropped, "price", "first")
}

// hedged returns a failed run in which the branch "ups" has won the choice "courier", and each branch has a step that failed. A compensation has undone
// a step of each of the branches "dhl" and "ups", and the steps of the Map in "dhl".
func hedged(t *testing.T) *history {
	h := failedRun(t, "pack", "step dhl/hold completed", "step dhl/book failed", "map dhl/each completed", "step dhl/each/0 failed", "step ups/book failed", "choice courier completed", "step pack failed", "compensation unbook completed")
	c := record.Choice{Won: []int{1}, Wanted: 1, Of: []string{"dhl", "ups"}, Returned: []string{"dhl"}}
	h.History[5].Output, _ = c.Encode()
	h.History = append(h.History, store.Step{
		Run: h.Run.UUID, Name: store.EndRecordName, Kind: store.KindRunEnd, Status: store.StepFailed,
		Output: (&record.Ending{Status: "failed", Undoes: map[string][]string{"unbook": {"dhl", "dhl/each", "ups/book"}}}).Encode(),
	})
	return h
}

// A step that failed in a branch that lost, or a Map with such an item, is not executed again because a compensation has undone it, as long as the choice is kept. It is if the
// choice is made again, or if the repair begins at the step.
func TestTheUndoneFailureOfALoserIsKeptWithItsChoice(t *testing.T) {
	undone := []string{"dhl/hold", "ups/book"}
	failedInLoser := []string{"dhl/book", "dhl/each", "dhl/each/0"}
	h := hedged(t)
	r := h.retry(Request{})
	want(t, "kept", shown(r.Repair.KeptSteps), failedInLoser...) // the choice has a new record, without "dhl" among those that had returned
	want(t, "dropped", r.Detail.Dropped, append(slices.Clone(undone), "pack", "unbook")...)
	want(t, "renewed", r.Detail.Renewed, "dhl/hold", "unbook", "ups/book")
	renewal, err := record.FindRenewal(r.Repair.NewSteps)
	if err != nil || renewal.KeyGeneration("dhl/book") != "#2" { // if a later repair executes it
		t.Errorf("the renewal is %+v, %v", renewal, err)
	}
	want(t, "kept from the end", shown(h.retry(Request{FromEnd: true}).Repair.KeptSteps), append(failedInLoser, "pack")...)
	_, d, err := CopyHistory(&h.RunToRepair, &Request{FromEnd: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "dropped of a copy", d.Dropped, append(slices.Clone(undone), "unbook")...)

	r = h.retry(Request{From: "courier"})
	want(t, "kept without the choice", shown(r.Repair.KeptSteps))
	want(t, "renewed without the choice", r.Detail.Renewed, "dhl/book", "dhl/each/0", "dhl/hold", "unbook", "ups/book")
}

// A failure of a loser that made the run fail is executed again with another key if it was undone, although its choice is kept; a failed child is
// started anew.
func TestTheUndoneFailureOfALoserThatFailedTheRun(t *testing.T) {
	for _, kind := range []string{"step", "child"} {
		h := failedRun(t, "dhl/book", kind+" dhl/book failed", "choice courier completed", "compensation unbook completed")
		if kind == "child" {
			h.child("dhl/book", store.Failed, "")
		}
		c := record.Choice{Won: []int{1}, Wanted: 1, Of: []string{"dhl", "ups"}, Keep: true}
		h.History[1].Output, _ = c.Encode()
		h.History = append(h.History, store.Step{
			Run: h.Run.UUID, Name: store.EndRecordName, Kind: store.KindRunEnd, Status: store.StepFailed,
			Output: (&record.Ending{Status: "failed", Undoes: map[string][]string{"unbook": {"dhl/book"}}}).Encode(),
		})
		r := h.retry(Request{})
		want(t, "dropped", r.Detail.Dropped, "dhl/book", "unbook")
		if kind == "step" {
			want(t, "renewed", r.Detail.Renewed, "dhl/book", "unbook")
		} else if len(r.ChildrenToRetry) != 0 || len(r.Repair.DetachedChildren) != 1 {
			t.Errorf("children to retry %v, detached %v", r.ChildrenToRetry, r.Repair.DetachedChildren)
		}
	}
}
