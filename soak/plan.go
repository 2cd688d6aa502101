package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// plan is the input of a run: the acts that it executes, one after the other, and how it ends.
type plan struct {
	Acts []act `json:"acts"`
	End  end   `json:"end"`
}

// end is how the function of a plan ends, unless the run is ended before.
type end string

const (
	endsWell   end = "completed"
	endsFailed end = "failed"
	endsPanic  end = "panics"
)

// act is one durable call, or several that belong together.
type act struct {
	Do   op     `json:"do"`
	Name string `json:"name"`
	N    int    `json:"n,omitzero"`    // attempts that fail, items, or branches; see op
	Ms   int    `json:"ms,omitzero"`   // how many milliseconds it takes, or waits
	Plan *plan  `json:"plan,omitzero"` // of a child
}

func (a act) duration() time.Duration { return time.Duration(a.Ms) * time.Millisecond }

// op is the durable call of an act.
type op string

const (
	doStep        op = "step"         // a step that takes Ms
	doFlaky       op = "flaky"        // a step whose first N attempts fail
	doFailing     op = "failing"      // a step whose N attempts all fail
	doOnce        op = "once"         // a step with AtMostOnce that takes Ms
	doVerify      op = "verify"       // a step with Verify
	doTx          op = "tx"           // a Tx step that writes a row
	doSleep       op = "sleep"        // a sleep of Ms
	doReceive     op = "receive"      // a Receive without a deadline
	doWithin      op = "within"       // a Receive within Ms
	doAwait       op = "await"        // a Callback
	doMap         op = "map"          // a Map of N items
	doBranches    op = "branches"     // N branches, and All of them
	doAny         op = "any"          // Any of N branches
	doQuorum      op = "quorum"       // a Quorum of N-1 of N branches
	doChild       op = "child"        // a child that is waited for
	doDetached    op = "detached"     // a detached child
	doCompensate  op = "compensate"   // a registered compensation
	doNaN         op = "nan"          // a step whose value cannot be encoded
	doChanged     op = "changed"      // a step in the first execution, a sleep in later ones
	doRace        op = "race"         // Any of a quick branch and N others, which start children and are ended by the choice
	doWaitForever op = "wait-forever" // a Receive of a signal that is never sent, in the child of a loser
)

// opWeights are the weights by which ops are drawn.
var opWeights = []struct {
	do     op
	weight int
}{
	{doStep, 30},
	{doFlaky, 6},
	{doFailing, 2},
	{doOnce, 4},
	{doVerify, 3},
	{doTx, 10},
	{doSleep, 6},
	{doReceive, 5},
	{doWithin, 4},
	{doAwait, 3},
	{doMap, 4},
	{doBranches, 3},
	{doAny, 3},
	{doQuorum, 2},
	{doChild, 6},
	{doRace, 3},
	{doDetached, 1},
	{doCompensate, 5},
	{doNaN, 1},
}

// drawPlan draws a plan whose children are nested at most depth deep.
func drawPlan(r *rand.Rand, depth int) *plan {
	p := &plan{End: endsWell}
	switch r.IntN(12) {
	case 0:
		p.End = endsFailed
	case 1:
		p.End = endsPanic
	}
	for i := range 2 + r.IntN(7) {
		p.Acts = append(p.Acts, drawAct(r, i, depth))
	}
	if r.IntN(15) == 0 {
		p.Acts = append(p.Acts, act{Do: doChanged, Name: fmt.Sprintf("a%d", len(p.Acts)), Ms: 2 * int(parkAfter/time.Millisecond)})
	}
	return p
}

func drawAct(r *rand.Rand, place, depth int) act {
	total := 0
	for _, o := range opWeights {
		total += o.weight
	}
	n := r.IntN(total)
	a := act{Name: fmt.Sprintf("a%d", place)}
	for _, o := range opWeights {
		if n -= o.weight; n < 0 {
			a.Do = o.do
			break
		}
	}
	switch a.Do {
	case doStep, doOnce, doVerify:
		if r.IntN(3) == 0 {
			a.Ms = 20 + r.IntN(400)
		}
	case doFlaky, doFailing:
		a.N, a.Ms = 1+r.IntN(3), r.IntN(200)
	case doSleep:
		a.Ms = 20 + r.IntN(1500)
	case doWithin:
		a.Ms = 50 + r.IntN(400)
	case doMap, doBranches, doAny, doQuorum:
		a.N = 2 + r.IntN(4)
	case doRace:
		a.N, a.Ms = 1+r.IntN(2), 20+r.IntN(100)
		a.Plan = &plan{End: endsWell, Acts: []act{{Do: doCompensate, Name: "a0"}, {Do: doStep, Name: "a1"}, {Do: doWaitForever, Name: "a2"}}}
	case doChild, doDetached:
		if depth == 0 {
			a.Do = doStep
			break
		}
		a.Plan = drawPlan(r, depth-1)
	}
	return a
}

// eachAct calls f for each act of the plan, not for those of its children.
func (p *plan) eachAct(f func(act)) {
	for _, a := range p.Acts {
		f(a)
	}
}
