package record

import (
	"encoding/json/v2"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/store"
)

// RenewalName is the name of the checkpoint that holds a Renewal. No user call can have this name.
const RenewalName = "\x1frenewal"

// Renewal tells which steps of a generation have idempotency keys of their own. The first generation has no such record.
type Renewal struct {
	Generation int32 `json:"generation"` // the number of the generation
	// Since has the steps that had completed, or were undone, before a repair made the run execute them anew, by their names as people see
	// them, with the numbers of the generations since which each has a new key. For all calls in a Map or a branch that was undone, it has the name
	// with a slash after it.
	Since map[string]int32 `json:"since,omitempty"`
	// SameKey has the dropped calls that keep their idempotency keys, or the tokens of their callbacks, by their names as people see them, in the
	// order of the names. Keys and tokens contain the name, so if the code calls such a call otherwise now, it keeps the name. For items
	// it has their Map.
	SameKey []string `json:"same_key,omitempty"`
	// All is the number of the generation since which all steps have new keys, because the run continued as new. Zero means the run
	// never did.
	All int32 `json:"all,omitzero"`
	// Places and KeptUpTo tell where calls stand in the code, which the order in which calls began does not tell after a repair; see places.go.
	Places   map[string]int32 `json:"places,omitempty"`
	KeptUpTo []int32          `json:"kept_up_to,omitempty"`
	// RerunItems has the items of Maps that Rerun has dropped, by their names as people see them. The run executes them even if other items have failed.
	RerunItems []string `json:"rerun_items,omitempty"`
	// Retries is how many generations in a row, this one included, the run has begun by itself after a failure.
	Retries int32 `json:"retries,omitzero"`
	// Failure is why the last generation failed, if RetryRun has begun this one. It has no stack and no lists.
	Failure *Failure `json:"failure,omitempty"`
	// FirstInput is the SHA-256 hash of the input with which the run was started, if it ever continued as new.
	FirstInput []byte `json:"first_input,omitempty"`
}

// NewStep returns the checkpoint that holds the record.
func (r *Renewal) NewStep(run uuid.UUID, epoch store.Epoch, now time.Time) store.Step {
	return store.Step{
		Run: run, Epoch: epoch, Name: RenewalName, Kind: store.KindKeyRenewal, Status: store.StepCompleted, Attempt: 1, Output: r.Encode(),
		StartedAt: now, EndedAt: now,
	}
}

// FindRenewal returns the record in a history. Without one it returns that of a first generation.
func FindRenewal(history []store.Step) (Renewal, error) {
	for i := range history {
		if history[i].Kind == store.KindKeyRenewal {
			return DecodeRenewal(history[i].Output)
		}
	}
	return Renewal{Generation: 1}, nil
}

// IsPlainRenewal reports whether the checkpoint is a Renewal that names no step, so that it tells people nothing.
func IsPlainRenewal(row store.Step) bool {
	if row.Kind != store.KindKeyRenewal {
		return false
	}
	r, err := DecodeRenewal(row.Output)
	return err == nil && len(r.Since) == 0
}

// HideRenewalFailure removes the failure from a checkpoint that is a Renewal. People see the failure as an error, which a redaction treats as such,
// and not in an output.
func HideRenewalFailure(row *store.Step) {
	if row.Kind != store.KindKeyRenewal {
		return
	}
	if r, err := DecodeRenewal(row.Output); err == nil && r.Failure != nil {
		r.Failure = nil
		row.Output = r.Encode()
	}
}

// HasRepair reports whether a repair has changed the history of the generation.
func (r *Renewal) HasRepair() bool { return r.Generation > max(r.All, 1) }

// KeyGeneration returns what the idempotency key of a step has between the run and the step: "#" and the number of the generation since which
// the step, or a scope around it, has new keys, or nothing. name is as people see it.
func (r *Renewal) KeyGeneration(name string) string {
	since := max(r.All, r.Since[name])
	for i := range name {
		if name[i] == '/' {
			since = max(since, r.Since[name[:i+1]])
		}
	}
	return generationSuffix(since)
}

// CallbackSuffix returns what the signals and the tokens of callbacks have at their end: "#" and the number of the generation that
// continued the run as new last, or nothing. A repair does not change the suffix, so tokens that were given out before remain valid.
func (r *Renewal) CallbackSuffix() string { return generationSuffix(r.All) }

// Receiver returns what the row of a signal shows as its receiver; see [store.ReceiveWrite]. name is the name of the step. The number of the
// generation does not follow the name, because a receive in a branch with this name may be called like that: no name begins with the separator.
func (r *Renewal) Receiver(name string) string {
	if r.All == 0 {
		return name
	}
	return naming.Separator + generationSuffix(r.All) + naming.Separator + name
}

func generationSuffix(n int32) string {
	if n == 0 {
		return ""
	}
	return "#" + strconv.Itoa(int(n))
}

// Encode returns the record.
func (r *Renewal) Encode() []byte { return encode(r) }

// DecodeRenewal decodes a record. For bytes that do not decode it returns an error, because a step must not be
// executed with an old key.
func DecodeRenewal(b []byte) (r Renewal, err error) {
	if err := payload.Problem(b); err != nil {
		return r, err
	}
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
func (d *RepairDetail) Encode() []byte { return encode(d) }

// ShortenLists removes the names after the first MaxRepairNames from each list.
func (d *RepairDetail) ShortenLists() {
	for _, names := range []*[]string{&d.Dropped, &d.Corrected, &d.Renewed} {
		*names = (*names)[:min(len(*names), MaxRepairNames)]
	}
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
