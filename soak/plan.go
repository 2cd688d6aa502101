package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// plan is the input of a run: what it does, one act after the other, and how it ends.
type plan struct {
	Acts []act `json:"acts"`
	End  end   `json:"end"`
}

// end is how a plan's function ends, if nothing ends it before.
type end string

const (
	endsWell   end = "completed"
	endsFailed end = "failed"
	endsPanic  end = "panics"
)

// act is one durable call, or several that belong together.
type act struct {
	Do   deed   `json:"do"`
	Name string `json:"name"`
	N    int    `json:"n,omitzero"`    // attempts that fail, items, branches; see deed
	Ms   int    `json:"ms,omitzero"`   // milliseconds that it takes, or waits
	Plan *plan  `json:"plan,omitzero"` // of a child
}

func (a act) time() time.Duration { return time.Duration(a.Ms) * time.Millisecond }

// deed says what an act does.
type deed string

const (
	doStep     deed = "step"     // that takes Ms
	doFlaky    deed = "flaky"    // N attempts fail
	doDoomed   deed = "doomed"   // every one of N attempts fails
	doOnce     deed = "once"     // AtMostOnce, takes Ms
	doVerify   deed = "verify"   // AtMostOnce, with Verify
	doTx       deed = "tx"       // writes a row
	doSleep    deed = "sleep"    // for Ms
	doReceive  deed = "receive"  // until the signal is there
	doWithin   deed = "within"   // until the signal is there, at most Ms
	doAwait    deed = "await"    // until the token is completed
	doMap      deed = "map"      // N items
	doBranches deed = "branches" // N branches, all
	doAny      deed = "any"      // the first of N branches
	doQuorum   deed = "quorum"   // all but one of N branches
	doChild    deed = "child"    // and waits
	doLeave    deed = "leave"    // a detached child
	doUndo     deed = "undo"     // registers a compensation
	doNaN      deed = "nan"      // a step's value that cannot be encoded
	doChanged  deed = "changed"  // is another kind of call when it is executed again
	doRace     deed = "race"     // a branch against N others that wait, with children; the choice ends these
	doStay     deed = "stay"     // waits for what never comes: a loser's child
)

// odds are how often each deed is drawn.
var odds = []struct {
	do     deed
	weight int
}{
	{doStep, 30},
	{doFlaky, 6},
	{doDoomed, 2},
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
	{doLeave, 1},
	{doUndo, 5},
	{doNaN, 1},
}

// draw draws a plan; depth is how deep children may still nest.
func draw(r *rand.Rand, depth int) *plan {
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
	for _, o := range odds {
		total += o.weight
	}
	n := r.IntN(total)
	a := act{Name: fmt.Sprintf("a%d", place)}
	for _, o := range odds {
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
	case doFlaky, doDoomed:
		a.N, a.Ms = 1+r.IntN(3), r.IntN(200)
	case doSleep:
		a.Ms = 20 + r.IntN(1500)
	case doWithin:
		a.Ms = 50 + r.IntN(400)
	case doMap, doBranches, doAny, doQuorum:
		a.N = 2 + r.IntN(4)
	case doRace:
		a.N, a.Ms = 1+r.IntN(2), 20+r.IntN(100)
		a.Plan = &plan{End: endsWell, Acts: []act{{Do: doUndo, Name: "a0"}, {Do: doStep, Name: "a1"}, {Do: doStay, Name: "a2"}}}
	case doChild, doLeave:
		if depth == 0 {
			a.Do = doStep
			break
		}
		a.Plan = draw(r, depth-1)
	}
	return a
}

// walk calls f for each act of the plan, not for those of its children.
func (p *plan) walk(f func(act)) {
	for _, a := range p.Acts {
		f(a)
	}
}
