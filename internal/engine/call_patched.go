package engine

import (
	"context"
	"strings"
	"sync"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// patchNameSeparator stands between a scope and the IDs of its patches. No user call can have this name.
const patchNameSeparator = naming.Separator + "patch" + naming.Separator

// patchDecision tells whether a run takes the new path at one place.
type patchDecision struct {
	once         sync.Once
	takesNewPath bool
	err          error
}

// Patched reports whether the run takes the new code path at the place with the given ID. A run takes the old path only if an earlier
// execution of the run has already passed the place. The first call of Patched for an ID in a scope decides and records which path the run
// takes.
func (s *Scope) Patched(id string, site uintptr) (bool, error) {
	if err := naming.Check("patch", id); err != nil {
		return false, err
	}
	full := s.namePrefix + patchNameSeparator + id
	r := s.r
	r.mu.Lock()
	p := r.patches[full]
	if p == nil {
		if r.patches == nil {
			r.patches = make(map[string]*patchDecision)
		}
		p = new(patchDecision)
		r.patches[full] = p
	}
	r.mu.Unlock()
	p.once.Do(func() { p.takesNewPath, p.err = s.decidePatch(full, site) })
	return p.takesNewPath, p.err
}

func (s *Scope) decidePatch(full string, site uintptr) (bool, error) {
	s.r.mu.Lock()
	passed := s.hasPassedPatchPointLocked()
	known := s.r.history[full]
	mustEnd := s.mustEndLocked()
	s.r.mu.Unlock()
	if s.r.preflightFindings != nil {
		return s.decidePatchInPreflight(full, site, known, passed, mustEnd)
	}
	if passed && known == nil && mustEnd {
		return false, nil // recorded calls follow, and may register compensations
	}
	recorded, err := s.beginCall(full, store.KindPatch, site)
	if err != nil {
		return false, err
	}
	if recorded != nil && recorded.Status.IsTerminal() {
		return string(recorded.Output) == "true", nil
	}
	if s.isInsideCall() {
		return false, nestedCallError(s.r, full)
	}
	out := []byte("true")
	if passed {
		out = []byte("false")
	}
	res, err := s.executeCall(&CallSpec{Name: "patch", Kind: store.KindPatch, CallSite: site, ExecuteAttempt: func(context.Context) (AttemptOutput, *record.Failure) {
		return AttemptOutput{Bytes: out}, nil
	}}, full, recorded)
	return err == nil && string(res.Output) == "true", err
}

// decidePatchInPreflight does the same as decidePatch in a preflight, which records no decision. The argument known is the decision that the
// run has recorded, or nil. Without a recorded decision, a run that has ended takes the old path at each place that it has passed.
func (s *Scope) decidePatchInPreflight(full string, site uintptr, known *store.Step, passed, mustEnd bool) (takes bool, err error) {
	p := s.r.preflightFindings
	switch {
	case known == nil && passed && mustEnd:
	case known == nil && p.runHasEnded:
		if !s.hadReturnedBeforeChoice() {
			err = s.checkOpen()
		}
	default:
		known, err = s.beginCall(full, store.KindPatch, site)
		if takes = !passed && !p.runHasEnded; known != nil && known.Status.IsTerminal() {
			takes = string(known.Output) == "true"
		}
	}
	if err != nil {
		return false, err
	}
	if !takes {
		p.noteNeededNameChange(naming.Display(s.namePrefix)+full[len(s.namePrefix)+len(patchNameSeparator):], store.KindPatch)
	}
	return takes, nil
}

// hadReturnedBeforeChoice reports whether the branch of the scope had returned before a choice ended it.
func (s *Scope) hadReturnedBeforeChoice() bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return s.branch != nil && s.branch.endByChoice != nil && s.branch.endByChoice.hadReturned
}

// hasPassedPatchPointLocked reports whether an earlier execution has passed this place: the history then holds a call of the scope, or of a
// branch or a Map in it, that this execution has not begun, and that comes after all calls of the scope's goroutine that this execution has
// made. Calls that a repair has kept may also come after calls that began after the repair; see record.Renewal.KeptUpTo. r.mu is held.
func (s *Scope) hasPassedPatchPointLocked() bool {
	r := s.r
	last := make([]int32, len(r.keyRenewals.KeptUpTo)+1)
	for name := range r.usedNames {
		if row := r.history[name]; row != nil && row.WasMadeByScopeGoroutine() && scopePrefix(name) == s.namePrefix {
			place, repairs := r.placeOf(row)
			last[repairs] = max(last[repairs], place)
		}
	}
	for name, row := range r.history {
		rest, inside := strings.CutPrefix(name, s.namePrefix)
		if !inside || rest == "" || rest[0] == naming.Separator[0] {
			continue
		}
		if row.Kind == store.KindCompensation || row.Kind == store.KindRunEnd || row.Kind == store.KindKeyRenewal || row.Kind == store.KindPatch {
			continue
		}
		if place, repairs := r.placeOf(row); place < last[repairs] {
			continue
		}
		first, _, _ := strings.Cut(rest, naming.Separator)
		if _, begun := r.usedNames[s.namePrefix+first]; !begun {
			return true
		}
	}
	return false
}

// placeOf returns the call's place in the order of the code, and how many of the repairs in record.Renewal.KeptUpTo precede that
// place. For a call that was renamed, record.Renewal may have the place under a previous name.
func (r *run) placeOf(row *store.Step) (place int32, repairs int) {
	k := &r.keyRenewals
	place = k.Place(row)
	if def := r.workflowDefinition(); len(k.Places) > 0 && def != nil {
		scope, earlier := scopePrefix(row.Name), *row
		for name := range def.callNames(row.Name[len(scope):]) {
			earlier.Name = scope + name
			if place = k.Place(&earlier); place != row.Seq {
				break
			}
		}
	}
	return place, k.RepairsBefore(place)
}
