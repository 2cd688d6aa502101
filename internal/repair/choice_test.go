package repair

import (
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
