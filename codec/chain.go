package codec

import (
	"slices"

	"github.com/seed8ec063be/durable/internal/payload"
)

type chain []payload.Codec

// Chain returns a codec that encodes with the given codecs, one after the other, and decodes with them in the opposite order. A
// Chain without codecs stores payloads as they are, behind the mark of encoded payloads.
func Chain(codecs ...payload.Codec) payload.Codec { return chain(slices.Clone(codecs)) }

// Encode implements the codec.
func (c chain) Encode(slot payload.Slot, b []byte) (_ []byte, err error) {
	for _, each := range c {
		if b, err = each.Encode(slot, b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Decode implements the codec.
func (c chain) Decode(slot payload.Slot, b []byte) (_ []byte, err error) {
	for _, each := range slices.Backward(c) {
		if b, err = each.Decode(slot, b); err != nil {
			return nil, err
		}
	}
	return b, nil
}
