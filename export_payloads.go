package durable

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/payload"
)

// ExportOption configures [Engine.Export].
type ExportOption func(*exportOptions)

type exportOptions struct{ plainPayloads bool }

// DecodePayloads makes [Engine.Export] write decoded payloads, even if the engine has a [Config.Codec]. durabletest.Replay
// then reads the export without the codec.
func DecodePayloads() ExportOption { return func(o *exportOptions) { o.plainPayloads = true } }

// encodedPayload is the form of an encoded payload in an export. Its bytes are written in base64.
type encodedPayload struct {
	Encoded []byte `json:"encoded"`
}

// DecodeExport decodes the payloads of an export in place with the codec of the engine. Payloads that are not encoded stay as
// they are. If the engine cannot decode a payload, DecodeExport decodes the other payloads and returns an error that wraps
// [ErrUnreadable].
func (e *Engine) DecodeExport(x *Exported) error {
	if x == nil {
		return fmt.Errorf("decode an export: %w: the *Exported is nil: decode into one what Engine.Export returned", ErrInvalidConfig)
	}
	var failed error
	err := x.eachPayload(func(slot payload.Slot, b *jsontext.Value) error {
		var in encodedPayload
		if json.Unmarshal(*b, &in, json.RejectUnknownMembers(true)) != nil || !payload.IsEncoded(in.Encoded) {
			return nil
		}
		plain, err := payload.Open(e.cfg.Codec, slot, in.Encoded)
		if err != nil {
			failed = fmt.Errorf("decode an export: %w", err)
			return nil
		}
		*b = plain
		return nil
	})
	if err != nil {
		return err
	}
	return failed
}

// encodePayloads encodes the payloads of an export.
func (e *Engine) encodePayloads(x *Exported) error {
	return x.eachPayload(func(slot payload.Slot, b *jsontext.Value) error {
		sealed, err := payload.Seal(e.cfg.Codec, slot, *b)
		if err == nil {
			*b, err = json.Marshal(encodedPayload{sealed})
		}
		return err
	})
}

// checkReadable returns an error that wraps ErrUnreadable if a payload of the export could not be decoded.
func (x *Exported) checkReadable() error {
	return x.eachPayload(func(slot payload.Slot, b *jsontext.Value) error {
		if err := payload.Problem(*b); err != nil {
			return fmt.Errorf("the %v: %w", slot, err)
		}
		return nil
	})
}

// eachPayload calls f with each payload that the export has, and with the payload's slot.
func (x *Exported) eachPayload(f func(slot payload.Slot, b *jsontext.Value) error) error {
	run, err := uuid.Parse(x.Run.RunID)
	if err != nil {
		return fmt.Errorf("%w: the export names no run: %w", ErrInvalidConfig, err)
	}
	var failed error
	visit := func(kind payload.Kind, name string, b *jsontext.Value) {
		if failed == nil && len(*b) > 0 {
			failed = f(payload.Slot{Run: run, Kind: kind, Name: name}, b)
		}
	}
	visit(payload.Input, "", &x.Run.Input)
	visit(payload.Output, "", &x.Run.Output)
	visit(payload.Error, "", &x.Run.Error)
	for i := range x.History {
		s := &x.History[i]
		name := naming.ParseDisplay(s.Name)
		visit(payload.Step, name, &s.Output)
		visit(payload.StepError, name, &s.Error)
		for n, a := range []*ExportedAttempt{s.FirstFailure, s.LastFailure} {
			if a != nil && (n == 0 || a != s.FirstFailure) {
				visit(payload.Attempts, fmt.Sprintf("%s\x00%d", name, n), &a.Error)
			}
		}
	}
	return failed
}
