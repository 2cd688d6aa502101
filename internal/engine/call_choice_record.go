package engine

import (
	"fmt"
	"strings"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
)

// newRecord returns the record of the choice in the code, without the deciders and the losers.
func (spec *ChoiceSpec) newRecord() record.Choice {
	c := record.Choice{Wanted: spec.MinSuccesses, Keep: spec.SelectLosers == nil}
	for _, b := range spec.Branches {
		c.Of = append(c.Of, b.Name())
	}
	return c
}

// newRecordWithDeciders returns the record with the deciders, without the losers.
func (spec *ChoiceSpec) newRecordWithDeciders(deciders []int) record.Choice {
	c := spec.newRecord()
	c.SetDeciders(deciders)
	return c
}

// DecodeDecidingBranches returns the indexes of the branches that decided a recorded choice: the winners, or the branch that failed.
// DecodeDecidingBranches returns ErrDiverged if the record does not belong to the choice in the code, or cannot be decoded.
func (s *Scope) DecodeDecidingBranches(spec *ChoiceSpec, recorded []byte) ([]int, error) {
	diverges := func(err error) error {
		return s.ReportDivergence(spec.Name, fmt.Errorf("%w: choice %q in run %q %w", ErrDiverged, s.DisplayName(spec.Name), s.RunNameOrUUID(), err))
	}
	c, err := record.DecodeChoice(recorded)
	if err != nil {
		return nil, diverges(fmt.Errorf("has a record (%d bytes) that does not decode: %w: bring back the old code", len(recorded), err))
	}
	now := spec.newRecord()
	deciders, err := c.Deciders(&now)
	if err != nil {
		return nil, diverges(err)
	}
	return deciders, nil
}

// WasCallRepeatedSinceChoice reports whether a repair has made the run execute the call again after the choice was recorded. If such
// a call fails in a winning branch now, the code need not have changed. The argument call is the name of the call as users see it.
func (s *Scope) WasCallRepeatedSinceChoice(choice, call string) bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	decided, row := s.r.history[s.fullName(choice)], s.r.history[naming.ParseDisplay(call)]
	return s.r.keyRenewals.HasRepair() && decided != nil && (row == nil || row.Seq > decided.Seq)
}

// Name returns the name of the branch with its scope, as users see it. For a nil Branch, which stands for a branch that could not begin,
// Name returns an empty string.
func (b *Branch) Name() string {
	if b == nil {
		return ""
	}
	return naming.Display(strings.TrimSuffix(b.scope.namePrefix, naming.Separator))
}
