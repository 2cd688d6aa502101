// Package coded is a Store that encodes the payloads of users before they reach the database, and decodes what it reads. It
// wraps another store, and only engines with a codec use it.
//
// # What is encoded
//
//   - the inputs, outputs and errors of runs and of their superseded generations;
//   - the outputs, errors and failed attempts of checkpoints, except what the engine itself records there: see encodesOutput;
//   - the payloads of signals, the inputs of schedules and of starts that wait for others of their key;
//   - texts in which a payload may occur: why a run is held, and what a version of the code did not fit.
//
// Names, IDs, keys, tags, times, reasons and actors of operators, and the types of errors stay readable.
//
// # To what a payload is bound
//
// A codec gets the slot of each payload: the run, the kind and the name. Checkpoints of superseded generations have another run ID
// in the database, but keep the slot of their run, so that a repair can copy them. A signal keeps its slot where a receive has
// copied it. Everything else that moves to another slot passes through the engine, and is encoded anew.
//
// # What cannot be decoded
//
// Reading never fails for a payload that cannot be decoded. In its place stand bytes for which payload.Problem returns the error, so
// one such payload does not hinder the other rows of a claim or of a list. The engine holds a run that needs such a payload.
//
// Encoding needs no database. It is done before a transaction begins, except where the transaction itself decides what is
// written: in the starts of schedules and of keys, in transactional steps, and in SignalTx, which finds the run in it.
package coded

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/store"
)

// Store is a store with a codec. It implements store.Store.
type Store struct {
	store.Store
	codec payload.Codec
}

// New returns a store that encodes the payloads in s.
func New(s store.Store, c payload.Codec) *Store { return &Store{s, c} }

// seal encodes a payload. Its error says that nothing was written, and that the same write may succeed later.
func (s *Store) seal(slot payload.Slot, plain []byte) ([]byte, error) {
	b, err := payload.Seal(s.codec, slot, plain)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrRejected, err)
	}
	return b, nil
}

// sealOnce encodes a payload, unless memory has it from an earlier try of the same write.
func (s *Store) sealOnce(memory *store.EncodedPayload, slot payload.Slot, plain []byte) ([]byte, error) {
	if plain == nil {
		return nil, nil
	}
	if memory.Encoded != nil && bytes.Equal(memory.Plain, plain) {
		return memory.Encoded, nil
	}
	b, err := s.seal(slot, plain)
	*memory = store.EncodedPayload{Plain: plain, Encoded: b}
	return b, err
}

// open decodes a payload in place. See payload.OpenOrMark.
func (s *Store) open(b *[]byte, slot payload.Slot) {
	if payload.IsEncoded(*b) {
		*b = payload.OpenOrMark(s.codec, slot, *b)
	}
}

// encodesOutput reports whether the output of a checkpoint is encoded. Outputs of the other kinds hold what the engine decided:
// names, numbers, times and UUIDs, which statements and views of the database read.
func encodesOutput(step *store.Step) bool {
	switch step.Kind {
	case store.KindStep, store.KindTx, store.KindReceive, store.KindCompensation:
		return true
	case store.KindChild: // before its end, the UUID of the child
		return step.Status.IsTerminal()
	case store.KindKeyRenewal: // has a hash of an input
		return true
	}
	return false
}

func outputSlot(origin uuid.UUID, step *store.Step) payload.Slot {
	return payload.Slot{Run: origin, Kind: payload.Step, Name: step.Name}
}

// sealStep encodes the payloads of a checkpoint.
func (s *Store) sealStep(step *store.Step, memory *store.EncodedPayloads) (err error) {
	if encodesOutput(step) {
		if step.Output, err = s.sealOnce(&memory.Output, outputSlot(step.Run, step), step.Output); err != nil {
			return err
		}
	}
	if step.Error, err = s.sealOnce(&memory.Error, payload.Slot{Run: step.Run, Kind: payload.StepError, Name: step.Name}, step.Error); err != nil {
		return err
	}
	if step.Kind != store.KindChild { // otherwise the child's workflow
		step.Failures, err = s.sealOnce(&memory.Failures, payload.Slot{Run: step.Run, Kind: payload.Attempts, Name: step.Name}, step.Failures)
	}
	return err
}

// openStep decodes the payloads of a checkpoint of the run origin.
func (s *Store) openStep(step *store.Step, origin uuid.UUID) {
	slot := outputSlot(origin, step)
	if step.Kind == store.KindReceive {
		slot.Kind = payload.Received
	}
	s.open(&step.Output, slot)
	s.open(&step.Error, payload.Slot{Run: origin, Kind: payload.StepError, Name: step.Name})
	s.open(&step.Failures, payload.Slot{Run: origin, Kind: payload.Attempts, Name: step.Name})
}

// openSteps decodes the checkpoints of runs that are not superseded generations.
func (s *Store) openSteps(steps []store.Step) {
	for i := range steps {
		s.openStep(&steps[i], steps[i].Run)
	}
}

// openRun decodes the payloads of a run.
func (s *Store) openRun(r *store.Run) {
	if r == nil {
		return
	}
	s.open(&r.Input, payload.Slot{Run: r.UUID, Kind: payload.Input})
	s.open(&r.Output, payload.Slot{Run: r.UUID, Kind: payload.Output})
	s.open(&r.Error, payload.Slot{Run: r.UUID, Kind: payload.Error})
	r.PauseOrHoldReason = s.openText(r.PauseOrHoldReason, payload.Slot{Run: r.UUID, Kind: payload.Reason})
}

func (s *Store) openRuns(runs []*store.Run) {
	for _, r := range runs {
		s.openRun(r)
	}
}

// encodedText is how an encoded text begins. What follows is base64.
const encodedText = "encoded:"

var textEncoding = base64.RawURLEncoding

// sealText encodes a text for a column of text.
func (s *Store) sealText(slot payload.Slot, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if before, after, found := findEncoded(text); found && before+after == "" { // it was read without being decoded, and stays as it is
		return text, nil
	}
	b, err := s.seal(slot, []byte(text))
	return encodedText + textEncoding.EncodeToString(b), err
}

// openText decodes the encoded text in a text, if there is one.
func (s *Store) openText(text string, slot payload.Slot) string {
	before, after, found := findEncoded(text)
	if !found {
		return text
	}
	b, _ := decodeText(text[len(before) : len(text)-len(after)])
	plain, err := payload.Open(s.codec, slot, b)
	if err != nil {
		plain = []byte("(a text that cannot be decoded)")
	}
	return before + string(plain) + after
}

// findEncoded returns what is before and after the first encoded text in a text, or false if there is none.
func findEncoded(text string) (before, after string, found bool) {
	before, rest, found := strings.Cut(text, encodedText)
	if !found {
		return "", "", false
	}
	end := strings.IndexFunc(rest, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
	})
	if end < 0 {
		end = len(rest)
	}
	_, isEncoded := decodeText(encodedText + rest[:end])
	return before, rest[end:], isEncoded
}

// decodeText returns the encoded payload that the encoded text holds.
func decodeText(text string) ([]byte, bool) {
	b, err := textEncoding.DecodeString(strings.TrimPrefix(text, encodedText))
	return b, err == nil && payload.IsEncoded(b)
}
