package record

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed8ec063be/durable/internal/store"
)

// Choice is the record of a choice. A replay must make the same choice among the same branches. Otherwise
// the recorded indexes would mean other branches, and an added or renamed branch would be executed
// although the decision was made without it.
type Choice struct {
	Won    []int    `json:"won,omitempty"`    // indexes of the branches with which the run continued, in the order in which they succeeded
	Failed []int    `json:"failed,omitempty"` // if there are no winners: indexes of the branches whose failure decided
	Of     []string `json:"of,omitempty"`     // all branches, in the order in which they were given
	Wanted int      `json:"wanted,omitzero"`  // how many had to succeed; zero if the first failure decides
	Keep   bool     `json:"keep,omitzero"`    // the other branches continued

	Ended    []string `json:"ended,omitempty"`    // the losers that had not returned
	Returned []string `json:"returned,omitempty"` // the losers that had returned: their results stay valid, and their children are cancelled

	Old bool `json:"-"` // the record has the oldest form, which does not name the losers
}

// DecodeChoice decodes a record. The oldest records are JSON arrays of the winners.
func DecodeChoice(b []byte) (c Choice, err error) {
	if bytes.HasPrefix(b, []byte("[")) {
		c.Old = true
		return c, json.Unmarshal(b, &c.Won)
	}
	return c, json.Unmarshal(b, &c)
}

// DecodeChoiceStep returns the record of a choice. It returns nil if the row is none that has an outcome, or if it does not decode: the replay
// of the choice reports that.
func DecodeChoiceStep(row *store.Step) *Choice {
	if row.Kind != store.KindChoice || row.Status != store.StepCompleted {
		return nil
	}
	c, err := DecodeChoice(row.Output)
	if err != nil {
		return nil
	}
	return &c
}

// Winners returns the names of the branches that have won, as people see them. The oldest records do not have the names.
func (c *Choice) Winners() (names []string) {
	for _, i := range c.Won {
		if i >= 0 && i < len(c.Of) {
			names = append(names, c.Of[i])
		}
	}
	return names
}

// Encode returns the record.
func (c *Choice) Encode() ([]byte, error) { return json.Marshal(c) }

// SetDeciders adds the deciders to a choice that is made now: the winners, or the branch that failed.
func (c *Choice) SetDeciders(branches []int) {
	if c.Wanted == 0 {
		c.Failed = branches
	} else {
		c.Won = branches
	}
}

// Deciders returns the indexes of the branches that decided the recorded choice: the winners, or the branch
// that failed. It returns an error if now, the choice in the code without its deciders, is another choice.
func (c *Choice) Deciders(now *Choice) ([]int, error) {
	deciders := slices.Concat(c.Won, c.Failed)
	switch {
	case len(c.Of) == 0: // an old record, which does not name the branches
	case !slices.Equal(c.Of, now.Of) || c.Wanted != now.Wanted || c.Keep != now.Keep:
		return nil, fmt.Errorf("is recorded as %s, and the code makes it %s: bring back the old choice, or give the new one another name", c.text(), now.text())
	}
	for _, i := range deciders {
		if i < 0 || i >= len(now.Of) {
			return nil, fmt.Errorf("recorded branch %d, and there are now %d: bring back the old choice, or give the new one another name", i, len(now.Of))
		}
	}
	if wanted := max(now.Wanted, 1); len(deciders) != wanted {
		return nil, fmt.Errorf("recorded %d branches that decided it, and the code's is decided by %d: give the new choice another name", len(deciders), wanted)
	}
	if (now.Wanted == 0) != (len(c.Failed) > 0) && !c.Old {
		return nil, errors.New("was decided by success, and the code's by failure, or the other way round: give the new choice another name")
	}
	return deciders, nil
}

// text describes the choice in words, for errors.
func (c *Choice) text() string {
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
