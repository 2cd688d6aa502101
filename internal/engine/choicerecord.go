package engine

import (
	"bytes"
	"encoding/json/v2"
	"fmt"
	"slices"
	"strings"
)

// choice is the record of a choice. A replay must make the same choice among the same branches. Otherwise
// the recorded indexes would mean other branches, and an added or renamed branch would be executed
// although the decision was made without it.
type choice struct {
	Won    []int    `json:"won,omitempty"`    // indexes of the branches with which the run continued, in the order in which they succeeded
	Failed []int    `json:"failed,omitempty"` // if there are no winners: indexes of the branches whose failure decided
	Of     []string `json:"of,omitempty"`     // all branches, in the order in which they were given
	Wanted int      `json:"wanted,omitzero"`  // how many had to succeed; zero if the first failure decides
	Keep   bool     `json:"keep,omitzero"`    // the other branches continued

	Ended    []string `json:"ended,omitempty"`    // the losers that had not returned
	Returned []string `json:"returned,omitempty"` // the losers that had returned: their results stay valid, and their children are cancelled

	old bool // the record has the oldest form, which does not name the losers
}

// decodeChoice decodes a record. The oldest records are JSON arrays of the winners.
func decodeChoice(b []byte) (c choice, err error) {
	if bytes.HasPrefix(b, []byte("[")) {
		c.old = true
		return c, json.Unmarshal(b, &c.Won)
	}
	return c, json.Unmarshal(b, &c)
}

// choice returns the record of the choice in the code, without the deciders and the losers.
func (spec *ChoiceSpec) choice() choice {
	c := choice{Wanted: spec.Wanted, Keep: spec.Losers == nil}
	for _, b := range spec.Of {
		c.Of = append(c.Of, b.Name())
	}
	return c
}

// decided returns the record with the deciders, without the losers.
func (spec *ChoiceSpec) decided(deciders []int) choice {
	c := spec.choice()
	if spec.Wanted == 0 {
		c.Failed = deciders
	} else {
		c.Won = deciders
	}
	return c
}

// Deciders returns the indexes of the branches that decided a recorded choice: the winners, or the branch
// that failed. It returns ErrDiverged if the record is of another choice than the one in the code, or does
// not decode.
func (s *Scope) Deciders(spec *ChoiceSpec, record []byte) ([]int, error) {
	diverges := func(format string, args ...any) error {
		return fmt.Errorf("%w: choice %q in run %q %w", ErrDiverged, s.Full(spec.Name), s.Address(), fmt.Errorf(format, args...))
	}
	c, err := decodeChoice(record)
	if err != nil {
		return nil, diverges("has a record (%d bytes) that does not decode: %w: bring back the old code", len(record), err)
	}
	deciders := slices.Concat(c.Won, c.Failed)
	now := spec.choice()
	switch {
	case len(c.Of) == 0: // an old record, which does not name the branches
	case !slices.Equal(c.Of, now.Of) || c.Wanted != now.Wanted || c.Keep != now.Keep:
		return nil, diverges("is recorded as %s, and the code makes it %s: bring back the old choice, or give the new one another name", c.text(), now.text())
	}
	for _, i := range deciders {
		if i < 0 || i >= len(now.Of) {
			return nil, diverges("recorded branch %d, and there are now %d: bring back the old choice, or give the new one another name", i, len(now.Of))
		}
	}
	if wanted := max(spec.Wanted, 1); len(deciders) != wanted {
		return nil, diverges("recorded %d branches that decided it, and the code's is decided by %d: give the new choice another name", len(deciders), wanted)
	}
	if (spec.Wanted == 0) != (len(c.Failed) > 0) && !c.old {
		return nil, diverges("was decided by success, and the code's by failure, or the other way round: give the new choice another name")
	}
	return deciders, nil
}

// text describes the choice in words, for errors.
func (c *choice) text() string {
	what := "the first failure"
	if c.Wanted > 0 {
		what = fmt.Sprintf("%d", c.Wanted)
	}
	rest := "ending the others"
	if c.Keep {
		rest = "keeping the others"
	}
	return fmt.Sprintf("%s of [%s], %s", what, strings.Join(c.Of, ", "), rest)
}

// Name returns the name of the branch with its scope, as users see it. It returns an empty name for a nil
// branch, which stands for a branch that could not begin.
func (b *Branch) Name() string {
	if b == nil {
		return ""
	}
	return DisplayName(strings.TrimSuffix(b.scope.prefix, separator))
}
