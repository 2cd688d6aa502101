package record

import "encoding/json/v2"

// Ending is the record of how a failed run ends, written before its first compensation is called. The
// failure itself is the error of the record.
type Ending struct {
	Status        string   `json:"status"`        // the status with which the run ends
	Compensations []string `json:"compensations"` // names as users see them, in the order of registration
	// Undoes has the steps that each compensation undoes, as far as the code says it. A retry executes them anew.
	Undoes map[string][]string `json:"undoes,omitempty"`
}

// Encode returns the record.
func (e *Ending) Encode() []byte {
	b, err := json.Marshal(e, json.Deterministic(true)) // CrashEverywhere compares the records of two executions
	if err != nil {
		return nil // cannot happen: names are valid text
	}
	return b
}

// DecodeEnding decodes a record. For bytes that do not decode it returns an empty Ending: the run then ends as
// failed, and executes the compensations that the code registers.
func DecodeEnding(b []byte) Ending {
	var e Ending
	if json.Unmarshal(b, &e) != nil {
		return Ending{}
	}
	return e
}
