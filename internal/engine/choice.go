package engine

import (
	"bytes"
	"encoding/json/v2"
	"slices"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// A choice records which branches a run went on with, and which ones it ended. What was ended must be
// known before a replay comes to the choice: a loser begins before that, and would do again what it was
// about to do when it was ended, take a signal that came later, or return in time after all. So the
// record names the losers' scopes, and a replay ends these before anything begins. What they had
// recorded is still answered, since compensations may be registered on the way; the first call that
// is not in history returns ErrCancelled, as it did at first.
//
// What an ended branch returns holds all the same if every call that it had begun was recorded, and it makes no
// other: then a replay comes to the same result. So a signal that it has received just before the choice is not
// lost. The first call that is refused decides that its result is ErrCancelled.
//
// The order of things makes that hold over a crash at any point:
//
//  1. No child is started, and no signal taken, in the losers any more, and what was under way is committed.
//  2. Each loser that has not returned is closed: nobody gets its result before the choice is committed.
//  3. The choice is committed.
//  4. The losers' contexts end, and those who wait for them go on.
//  5. The children that losers started are cancelled. Every execution to come makes sure of this before
//     it calls the function.

// branchEnd is what is known of a branch that a choice has ended.
type branchEnd struct {
	choice   string    // the name of it, with its scope
	at       time.Time // when: a sleep that was over by then has ended by itself
	returned bool      // the branch had returned

	// Of a replay: the contexts end when the branch has come to the end of its history, or when the
	// function has come to the choice, whatever is later; but at the first call that is new in any case.
	branch  *Branch // nil: it has not begun
	unasked int     // terminal rows in it that it has not asked for yet
	reached bool
}

// caughtUp ends the contexts of a branch that has nothing to replay. run.mu is held.
func (e *branchEnd) caughtUp() {
	if e.reached && e.unasked <= 0 && e.branch != nil {
		e.branch.stop()
	}
}

// losersOf reads from the history, once it is complete, which branches were ended.
func (r *run) losersOf() {
	r.recall()
	for _, row := range r.history {
		if row.Kind != store.KindChoice || row.Status != store.StepCompleted {
			continue
		}
		c, err := decodeChoice(row.Output)
		if err != nil {
			continue // the call tells
		}
		r.note(c.Ended, branchEnd{choice: row.Name, at: row.EndedAt})
		r.note(c.Returned, branchEnd{choice: row.Name, at: row.EndedAt, returned: true})
	}
	if len(r.ended) == 0 {
		return
	}
	for _, row := range r.history {
		if row.Status.Terminal() && row.Kind != store.KindCompensation {
			for prefix := range scopes(row.Name) {
				if e := r.ended[prefix]; e != nil {
					e.unasked++
				}
			}
		}
	}
}

func (r *run) note(names []string, end branchEnd) {
	if r.ended == nil && len(names) > 0 {
		r.ended = make(map[string]*branchEnd)
	}
	for _, name := range names {
		prefix := Unshown(name) + separator
		if first := r.ended[prefix]; first == nil || end.at.Before(first.at) {
			own := end
			r.ended[prefix] = &own
		}
	}
}

// scopes yields the prefixes of the scopes around a name, the outermost first.
func scopes(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range len(name) {
			if name[i] == separator[0] && !yield(name[:i+1]) {
				return
			}
		}
	}
}

// Loser is a branch that a choice may end.
type Loser struct {
	Branch *Branch
	// Close keeps back what the branch returns until Tell is called, unless it has returned. It reports
	// whether it has.
	Close func() (returned bool)
	// Tell is called once after Close has reported false, with ErrCancelled, or with ErrSuspended if the choice was
	// not recorded. See [Branch.Refused].
	Tell func(err error)
}

// ChoiceSpec is one choice.
type ChoiceSpec struct {
	Name   string
	Site   uintptr
	Won    []int                   // the deciders, unless history holds the choice
	Losers func(won []int) []Loser // nil: the others go on
	Of     []*Branch               // all branches, in the order in which they were given; nil is one that could not begin
	Wanted int                     // how many have to succeed; 0: it is decided by the first failure
}

// Choose returns the record of a choice, see Deciders, and ends the losers.
func (s *Scope) Choose(spec *ChoiceSpec) (Result, error) {
	r := s.r
	full := s.prefix + spec.Name
	recorded, err := s.claimName(full, store.KindChoice, spec.Site)
	switch {
	case err != nil:
		return Result{}, err
	case recorded != nil && recorded.Status.Terminal():
		return s.chosen(spec, recorded)
	case recorded == nil:
		if err := CheckName("choice", spec.Name); err != nil {
			return Result{}, err
		}
	}
	if s.nested() {
		return Result{}, nestedError(r, full)
	}
	r.idle.busy()
	defer r.idle.done()
	t := &task{r: r, s: s, spec: &Spec{Name: spec.Name, Kind: store.KindChoice}, name: full, recorded: recorded, attempt: 1, first: r.e.clock.now()}
	if recorded != nil {
		t.attempt, t.first, t.exists = recorded.Attempt+1, recorded.StartedAt, true
	}
	return t.choose(spec)
}

// chosen is a choice that history holds.
func (s *Scope) chosen(spec *ChoiceSpec, row *store.Step) (Result, error) {
	c, err := decodeChoice(row.Output)
	if row.Status != store.StepCompleted || err != nil {
		return resultOf(row), nil
	}
	r := s.r
	if c.old && spec.Losers != nil { // who was ended is not known: those who have not returned by now
		losers := ownLosers(r, spec.Losers(c.Won))
		t := &task{r: r, s: s, name: row.Name}
		unlock := lockAll(losers)
		_, _, closed := closeAll(losers)
		if !t.end(losers, closed, row.EndedAt, unlock) {
			return Result{}, ErrSuspended
		}
		return resultOf(row), nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Concat(c.Ended, c.Returned) {
		if e := r.ended[Unshown(name)+separator]; e != nil {
			e.reached = true
			e.caughtUp()
		}
	}
	return resultOf(row), nil
}

// choose ends the losers and records the choice.
func (t *task) choose(spec *ChoiceSpec) (Result, error) {
	r := t.r
	won, err := t.probeChoice(spec)
	if err != nil {
		return Result{}, err
	}
	var losers []Loser
	if spec.Losers != nil {
		losers = ownLosers(r, spec.Losers(won))
	}
	unlock := lockAll(losers)
	made := spec.decided(won)
	var closed []Loser
	made.Ended, made.Returned, closed = closeAll(losers)
	record, err := json.Marshal(&made)
	if err != nil { // it is numbers and valid text
		unlock()
		return Result{}, err
	}
	at := r.endsNow()
	w := t.row(store.StepCompleted, record, nil)
	w.Step.EndedAt = at
	res, _, err := t.write(w)
	if spec.Losers != nil && (err != nil || !bytes.Equal(res.Output, record)) {
		// What is closed stays so here, and is not recorded: only another execution can go on.
		if r.leaving() == nil {
			r.logger().Error("a choice could not be recorded; the run leaves this process", telemetry.KeyStep, Shown(t.name), telemetry.KeyError, err)
			r.lose()
		}
		unlock()
		for _, l := range closed {
			l.Tell(ErrSuspended)
		}
		return Result{}, ErrSuspended
	}
	if err != nil {
		unlock()
		return Result{}, err
	}
	if !t.end(losers, closed, at, unlock) {
		return Result{}, ErrSuspended
	}
	return res, nil
}

// end ends the losers of a choice that is recorded. It reports false if the run was suspended over it.
func (t *task) end(losers, closed []Loser, at time.Time, unlock func()) bool {
	r := t.r
	r.mu.Lock()
	for _, l := range losers {
		if l.Branch.end == nil {
			returned := !slices.ContainsFunc(closed, func(c Loser) bool { return c.Branch == l.Branch })
			l.Branch.end = &branchEnd{choice: t.name, at: at, returned: returned, branch: l.Branch}
			if r.ended == nil {
				r.ended = make(map[string]*branchEnd)
			}
			r.ended[l.Branch.scope.prefix] = l.Branch.end
		}
	}
	r.mu.Unlock()
	unlock()
	for _, l := range losers {
		l.Branch.stop()
	}
	for _, l := range closed {
		l.Tell(ErrCancelled)
	}
	return len(losers) == 0 || r.cancelLosersChildren(false)
}

// endsNow is when a branch that is ended now has ended: not before a sleep that was over.
func (r *run) endsNow() time.Time {
	now := r.e.clock.now().Truncate(time.Microsecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.slept.After(now) { // the measure of the database's clock was corrected
		return r.slept
	}
	return now
}

// ownLosers are the branches of this execution that no choice has ended yet, each once, in the order of their
// prefixes.
func ownLosers(r *run, losers []Loser) []Loser {
	losers = slices.DeleteFunc(losers, func(l Loser) bool { return l.Branch == nil || l.Branch.scope.r != r })
	slices.SortFunc(losers, func(a, b Loser) int { return strings.Compare(a.Branch.scope.prefix, b.Branch.scope.prefix) })
	return slices.CompactFunc(losers, func(a, b Loser) bool { return a.Branch == b.Branch })
}

// lockAll waits until nothing is under way in the losers that must not come after the choice.
func lockAll(losers []Loser) (unlock func()) {
	for _, l := range losers {
		l.Branch.commit.Lock()
	}
	return func() {
		for _, l := range losers {
			l.Branch.commit.Unlock()
		}
	}
}

// closeAll closes the losers. It returns the names of those that had not returned, and of those that had,
// and the former as closed.
func closeAll(losers []Loser) (ended, returned []string, closed []Loser) {
	for _, l := range losers {
		if l.Branch.ended() {
			continue // by another choice, which has recorded it
		}
		name := l.Branch.Name()
		if l.Close() {
			returned = append(returned, name)
		} else {
			ended = append(ended, name)
			closed = append(closed, l)
		}
	}
	return ended, returned, closed
}

// ended reports whether a choice has ended this very branch.
func (b *Branch) ended() bool {
	b.scope.r.mu.Lock()
	defer b.scope.r.mu.Unlock()
	return b.end != nil
}
