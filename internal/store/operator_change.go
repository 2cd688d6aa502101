package store

import (
	"encoding/json"
	"fmt"
	"time"
)

// OperatorVerb is what an operator does to a queue, a limit, a schedule or a worker. The database stores the texts of OperatorVerb
// constants.
type OperatorVerb string

// The verbs.
const (
	OperatorSet    OperatorVerb = "set"
	OperatorReset  OperatorVerb = "reset" // to what code declares
	OperatorPause  OperatorVerb = "pause"
	OperatorResume OperatorVerb = "resume"
	OperatorDelete OperatorVerb = "delete"
	OperatorQuiet  OperatorVerb = "quiet" // of a worker
)

// OperatorChange is the last change that an operator has made to a queue, a limit, a schedule or a worker. The database stores an
// OperatorChange as JSON.
type OperatorChange struct {
	Verb   OperatorVerb `json:"verb"`
	At     time.Time    `json:"at"`
	By     string       `json:"by,omitzero"`
	Reason string       `json:"reason,omitzero"`
}

// EncodeJSON returns the change as JSON, the form in which the database stores it.
func (c OperatorChange) EncodeJSON() string {
	c.At = c.At.UTC().Truncate(time.Microsecond)
	b, err := json.Marshal(c)
	if err != nil {
		panic("store: an operator's change does not encode: " + err.Error())
	}
	return string(b)
}

// EncodeJSONOrNil returns the change as the JSON that the database stores, or nil for a nil *OperatorChange.
func (c *OperatorChange) EncodeJSONOrNil() any {
	if c == nil {
		return nil
	}
	return c.EncodeJSON()
}

// DecodeOperatorChange decodes the stored JSON of a change. DecodeOperatorChange returns nil for an empty text.
func DecodeOperatorChange(text string) (*OperatorChange, error) {
	if text == "" {
		return nil, nil
	}
	c := new(OperatorChange)
	if err := json.Unmarshal([]byte(text), c); err != nil {
		return nil, fmt.Errorf("the recorded change of an operator does not decode: %w", err)
	}
	return c, nil
}

// DeleteOrResetRequest names a queue or a limit that an operator deletes or resets.
type DeleteOrResetRequest struct {
	Name   string
	Now    time.Time
	Actor  string
	Reason string
}

// ActorAndReason returns the actor, the reason and the time that an event of the deletion records.
func (c DeleteOrResetRequest) ActorAndReason() ActorAndReason {
	return ActorAndReason{Actor: c.Actor, Reason: c.Reason, At: c.Now}
}

// OperatorChange returns the OperatorChange that the store records for the deletion or the reset.
func (c DeleteOrResetRequest) OperatorChange(verb OperatorVerb) OperatorChange {
	return OperatorChange{Verb: verb, At: c.Now, By: c.Actor, Reason: c.Reason}
}
