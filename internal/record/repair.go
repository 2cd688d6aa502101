package record

import "encoding/json/v2"

// RenewalName is the name of the checkpoint that holds a Renewal. No user call can have this name.
const RenewalName = "\x1frenewal"

// Renewal tells which steps a run executes with new idempotency keys: those that had completed before a repair made
// the run execute them anew. The keys of the map are the names of steps as people see them, and the values the
// numbers of the generations since which each has a new key.
type Renewal struct {
	Since map[string]int32 `json:"since"`
}

// Encode returns the record.
func (r *Renewal) Encode() []byte { return encode(r) }

// DecodeRenewal decodes a record. For bytes that do not decode it returns an error, because a step must not be
// executed with an old key.
func DecodeRenewal(b []byte) (r Renewal, err error) {
	err = json.Unmarshal(b, &r)
	return r, err
}

// RepairDetail tells what a repair changed, by the names of calls as people see them. Each list has at most
// MaxRepairNames names.
type RepairDetail struct {
	Kept      int      `json:"kept"`                // how many checkpoints the new generation has from the superseded one
	Dropped   []string `json:"dropped,omitempty"`   // calls that are made again
	Corrected []string `json:"corrected,omitempty"` // calls with a value that an operator has set
	Renewed   []string `json:"renewed,omitempty"`   // calls with new idempotency keys
}

// MaxRepairNames is the largest length of the lists of a RepairDetail.
const MaxRepairNames = 1000

// Encode returns the record.
func (d *RepairDetail) Encode() []byte {
	cut := func(names []string) []string { return names[:min(len(names), MaxRepairNames)] }
	short := RepairDetail{Kept: d.Kept, Dropped: cut(d.Dropped), Corrected: cut(d.Corrected), Renewed: cut(d.Renewed)}
	return encode(&short)
}

// DecodeRepairDetail decodes a record. For bytes that do not decode it returns an empty RepairDetail.
func DecodeRepairDetail(b []byte) RepairDetail {
	var d RepairDetail
	if json.Unmarshal(b, &d) != nil {
		return RepairDetail{}
	}
	return d
}

func encode(v any) []byte {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil // cannot happen: names are valid text
	}
	return b
}
