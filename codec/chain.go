package codec

import (
	"fmt"
	"slices"

	"github.com/seed8ec063be/durable/internal/payload"
)

type codecChain []payload.Codec

// Chain returns a codec that encodes with the given codecs, one after the other, and decodes in the opposite order. A Chain also
// decodes payloads that were encoded by only some of its codecs of this package, or in another order: see the package comment.
// A Chain of no codecs does not change payloads, apart from the prefix that every encoded payload has. durable.New refuses a
// Chain with a nil codec.
func Chain(codecs ...payload.Codec) payload.Codec { return codecChain(slices.Clone(codecs)) }

// Check implements payload.Checker: no codec of the chain is nil, and each is usable.
func (c codecChain) Check() error {
	for i, each := range c {
		if each == nil {
			return fmt.Errorf("codec %d of codec.Chain is nil", i+1)
		}
		if inner, ok := each.(payload.Checker); ok {
			if err := inner.Check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Encode implements the codec.
func (c codecChain) Encode(slot payload.Slot, b []byte) (_ []byte, err error) {
	for _, each := range c {
		if b, err = each.Encode(slot, b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Decode implements the codec.
func (c codecChain) Decode(slot payload.Slot, b []byte) ([]byte, error) { return decodeAll(c, slot, b) }

func (c codecChain) decodeOwn(slot payload.Slot, b []byte) (_ []byte, found layers, err error) {
	for _, each := range slices.Backward(c) {
		own, ok := each.(layer)
		if !ok {
			b, err = each.Decode(slot, b)
			found.decoded++
		} else {
			var inner layers
			b, inner, err = own.decodeOwn(slot, b)
			found.decoded, found.missing = found.decoded+inner.decoded, found.missing+inner.missing
		}
		if err != nil {
			return nil, found, err
		}
	}
	return b, found, nil
}
