package store

import (
	"encoding/json"
	"fmt"
	"time"
)

// OperatorVerb is what an operator does to a queue, a limit, a schedule or a worker. The texts are stored.
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

// OperatorChange is what an operator has done last to a queue, a limit, a schedule or a worker. Its JSON is stored.
type OperatorChange struct {
	Verb   OperatorVerb `json:"verb"`
	At     time.Time    `json:"at"`
	By     string       `json:"by,omitzero"`
	Reason string       `json:"reason,omitzero"`
}

// EncodeJSON returns the recorded form of the change.
func (c OperatorChange) EncodeJSON() string {
	c.At = c.At.UTC().Truncate(time.Microsecond)
	b, err := json.Marshal(c)
	if err != nil {
		panic("store: an operator's change does not encode: " + err.Error())
	}
	return string(b)
}

// EncodeJSONOrNil returns the recorded form of the change, or nil for no change.
func (c *OperatorChange) EncodeJSONOrNil() any {
	if c == nil {
		return nil
	}
	return c.EncodeJSON()
}

// DecodeOperatorChange decodes a recorded change. It returns nil for an empty text.
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

// ActorAndReason returns the act that an event of the deletion records.
func (c DeleteOrResetRequest) ActorAndReason() ActorAndReason {
	return ActorAndReason{Actor: c.Actor, Reason: c.Reason, At: c.Now}
}

// OperatorChange returns the OperatorChange that is recorded for the request.
func (c DeleteOrResetRequest) OperatorChange(verb OperatorVerb) OperatorChange {
	return OperatorChange{Verb: verb, At: c.Now, By: c.Actor, Reason: c.Reason}
}
