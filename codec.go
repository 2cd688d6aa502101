package durable

import (
	jsonv1 "encoding/json"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Values are stored as JSON (RFC 8259), by encoding/json/v2: deterministic, so that
// equal inputs have equal bytes; strict, so that text which is not valid UTF-8,
// NaN, channels and cycles are refused rather than changed; nil and empty slices
// and maps are kept apart; a time.Duration is its nanoseconds. In a value of type any,
// an integer of 2^53 or more comes back as int64 or uint64, with all its digits.
var encoding = json.JoinOptions(
	json.Deterministic(true),
	json.FormatNilSliceAsNull(true),
	json.FormatNilMapAsNull(true),
	jsonv1.FormatDurationAsNano(true),
)

var exactNumbers = json.JoinOptions(encoding, json.WithUnmarshalers(json.UnmarshalFromFunc(decodeAny)))

// encode makes the stored form of v, at most limit bytes long.
func encode(v any, limit int) (b []byte, err error) {
	b, err = json.Marshal(v, encoding)
	if err != nil {
		return nil, fmt.Errorf("%w: a value of type %T: %w", ErrNotEncodable, v, err)
	}
	if len(b) > limit {
		return nil, fmt.Errorf("%w: a value of type %T takes %d bytes, at most %d are kept: store the data elsewhere and return its key, or raise Config.MaxPayload",
			ErrPayloadTooLarge, v, len(b), limit)
	}
	return b, nil
}

// decode reads the stored form.
func decode[T any](b []byte) (v T, err error) {
	return v, decodeInto(b, &v)
}

func decodeInto[T any](b []byte, v *T) error {
	opts := encoding
	if open(reflect.TypeFor[T]()) {
		opts = exactNumbers
	}
	if err := json.Unmarshal(b, v, opts); err != nil {
		return fmt.Errorf("decode into %v: %w", reflect.TypeFor[T](), err)
	}
	return nil
}

// roundTrip encodes v and answers it as every replay will see it.
func roundTrip[T any](v T, limit int) ([]byte, *T, error) {
	b, err := encode(v, limit)
	if err != nil {
		return nil, nil, err
	}
	back := new(T)
	if err := decodeInto(b, back); err != nil {
		return nil, nil, fmt.Errorf("%w: it encodes, and does not decode again: %w", ErrNotEncodable, err)
	}
	return b, back, nil
}

// decodeAny reads numbers into any without losing digits, and leaves the rest alone.
func decodeAny(dec *jsontext.Decoder, v *any) error {
	if dec.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	text := token.String()
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return err
	}
	// From 2^53 on, one float stands for several integers, and is written as one of them.
	const exact = 1 << 53
	if strings.ContainsAny(text, ".eE") || (f > -exact && f < exact) {
		*v = f
		return nil
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		*v = i
		return nil
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		*v = u
		return nil
	}
	if strconv.FormatFloat(f, 'f', -1, 64) != text {
		return fmt.Errorf("the integer %s fits neither int64 nor uint64", text)
	}
	*v = f // a float that was written without an exponent
	return nil
}

// openTypes remembers which types can hold an any: only those pay for decodeAny.
var openTypes sync.Map // reflect.Type to bool

func open(t reflect.Type) bool {
	if known, ok := openTypes.Load(t); ok {
		return known.(bool)
	}
	is := holdsAny(t, make(map[reflect.Type]bool))
	openTypes.Store(t, is)
	return is
}

func holdsAny(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return holdsAny(t.Elem(), seen)
	case reflect.Map:
		return holdsAny(t.Key(), seen) || holdsAny(t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if holdsAny(f.Type, seen) {
				return true
			}
		}
	}
	return false
}
