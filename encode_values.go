package durable

import (
	"encoding"
	jsonv1 "encoding/json"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/payload"
)

// jsonOptions holds the options of encoding/json/v2, which encodes values as JSON (RFC 8259). The encoding is deterministic, so that
// equal inputs have equal bytes. It is strict: invalid UTF-8, NaN, channels and cycles are refused. Nil and empty slices and maps
// stay distinct, and a time.Duration is encoded as nanoseconds. In a value of type any, integers of 2^53 and more decode to int64
// or uint64, so that no digit is lost; see exactNumberOptions.
var jsonOptions = json.JoinOptions(
	json.Deterministic(true),
	json.FormatNilSliceAsNull(true),
	json.FormatNilMapAsNull(true),
	jsonv1.FormatDurationAsNano(true),
)

var exactNumberOptions = json.JoinOptions(jsonOptions, json.WithUnmarshalers(json.UnmarshalFromFunc(decodeExactNumber)))

// encode returns the JSON of the value at v. It returns ErrPayloadTooLarge if the JSON is longer than limit bytes. It takes a
// pointer because json would copy the value otherwise.
func encode[T any](v *T, limit int) (b []byte, err error) {
	b, err = json.Marshal(v, jsonOptions)
	if err != nil {
		return nil, fmt.Errorf("%w: a value of type %T: %w", ErrNotEncodable, *v, err)
	}
	if len(b) > limit {
		return nil, fmt.Errorf("%w: a value of type %T takes %d bytes, at most %d are kept: store the data elsewhere and return its key, or raise Config.MaxPayload",
			ErrPayloadTooLarge, *v, len(b), limit)
	}
	return b, nil
}

// decode returns the value that the JSON encodes.
func decode[T any](b []byte) (v T, err error) {
	return v, decodeInto(b, &v)
}

func decodeInto[T any](b []byte, v *T) error {
	if err := payload.Problem(b); err != nil {
		return err
	}
	opts := jsonOptions
	if checkTypeCached(&typesWithInterface, reflect.TypeFor[T](), containsInterface) {
		opts = exactNumberOptions
	}
	if err := json.Unmarshal(b, v, opts); err != nil {
		return newDecodeError(reflect.TypeFor[T](), err)
	}
	return nil
}

// encodeAndDecode encodes v, and returns the JSON and the value that it decodes to, as every replay gets it. If a method of v panics,
// encodeAndDecode returns an error: v is often the result of a step that has taken effect, and a panic would let the step be executed
// again.
func encodeAndDecode[T any](v T, limit int) (b []byte, back *T, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, back = nil, nil
			err = fmt.Errorf("%w: a value of type %T: %w", ErrNotEncodable, v, &codecPanicError{p, debug.Stack()})
		}
	}()
	b, err = encode(&v, limit)
	if err != nil {
		return nil, nil, err
	}
	if checkTypeCached(&typesDecodingToSelf, reflect.TypeFor[T](), decodesToItself) {
		return b, &v, nil
	}
	back = new(T)
	if err := decodeInto(b, back); err != nil {
		return nil, nil, fmt.Errorf("%w: it encodes, and does not decode again: %w", ErrNotEncodable, err)
	}
	return b, back, nil
}

// codecPanicError is the error for a panic of a method that encodes or decodes a value.
type codecPanicError struct {
	value any
	stack []byte
}

func (e *codecPanicError) Error() string {
	return "its encoding panicked: " + engine.PanicText(e.value)
}

func (e *codecPanicError) Unwrap() error { return ErrPanic }

// encodeAndCheckDecodes does what encode does, and refuses values that do not decode again. It is for values that are decoded only
// later, or in another process.
func encodeAndCheckDecodes[T any](v T, limit int) ([]byte, error) {
	if checkTypeCached(&typesThatDecode, reflect.TypeFor[T](), isDecodableType) {
		return encode(&v, limit)
	}
	b, _, err := encodeAndDecode(v, limit)
	return b, err
}

// decodeExactNumber decodes a number into v without losing digits. For other values it returns errors.ErrUnsupported, so that the default
// decoding is used.
func decodeExactNumber(dec *jsontext.Decoder, v *any) error {
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
	// From 2^53 on, one float64 represents several integers, so that decoding an integer into it would lose digits.
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
		return errors.New("the integer fits neither int64 nor uint64")
	}
	*v = f // a float64 that was encoded without an exponent
	return nil
}

// typesWithInterface caches which types can contain an interface: only these types are decoded with decodeExactNumber, because it is slow.
// typesThatDecode caches which types certainly decode again. typesDecodingToSelf caches which types need not be decoded at all, because the result
// would equal the value.
var typesWithInterface, typesThatDecode, typesDecodingToSelf sync.Map // reflect.Type to bool

func checkTypeCached(types *sync.Map, t reflect.Type, find func(t reflect.Type, seen map[reflect.Type]bool) bool) bool {
	if known, ok := types.Load(t); ok {
		return known.(bool)
	}
	is := find(t, make(map[reflect.Type]bool))
	types.Store(t, is)
	return is
}

func containsInterface(t reflect.Type, seen map[reflect.Type]bool) bool {
	return containsKind(t, seen, reflect.Interface)
}

// containsKind reports whether the type is of one of the kinds, or contains a type that is.
func containsKind(t reflect.Type, seen map[reflect.Type]bool, kinds ...reflect.Kind) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	if slices.Contains(kinds, t.Kind()) {
		return true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return containsKind(t.Elem(), seen, kinds...)
	case reflect.Map:
		return containsKind(t.Key(), seen, kinds...) || containsKind(t.Elem(), seen, kinds...)
	case reflect.Struct:
		for f := range t.Fields() {
			if containsKind(f.Type, seen, kinds...) {
				return true
			}
		}
	}
	return false
}

// customDecodings are the interfaces by which a type determines how it is decoded.
var customDecodings = []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[json.UnmarshalerFrom](), reflect.TypeFor[encoding.TextUnmarshaler]()}

// customEncodings are the interfaces by which a type determines its own encoding.
var customEncodings = append([]reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.MarshalerTo](), reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextAppender](),
}, customDecodings...)

// decodesToItself reports whether each value of the type that can be encoded decodes to an equal value, which shares no memory with it: the
// type is a number, a text, a boolean, or a struct whose fields are all encoded and of such types.
func decodesToItself(t reflect.Type, seen map[reflect.Type]bool) bool {
	switch t.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return false
	case reflect.Struct:
		for f := range t.Fields() {
			_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || f.Anonymous || f.Tag.Get("json") == "-" || options != "" && options != "omitempty" || !decodesToItself(f.Type, seen) {
				return false
			}
		}
	}
	return isDecodableType(t, seen)
}

// isDecodableType reports whether values of the type certainly decode again: the type contains only kinds that JSON has, no interfaces, and
// no types that determine their own encoding.
func isDecodableType(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	for _, own := range customEncodings {
		if reflect.PointerTo(t).Implements(own) {
			return false
		}
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return isDecodableType(t.Elem(), seen)
	case reflect.Map:
		return isDecodableType(t.Key(), seen) && isDecodableType(t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if f.Anonymous && f.Type.Kind() == reflect.Pointer && !f.IsExported() {
				return false // json encodes the fields of such an embedded struct, and cannot decode them
			}
			if f.Tag.Get("json") != "-" && (strings.Contains(f.Tag.Get("json"), "format:") || !isDecodableType(f.Type, seen)) {
				return false
			}
		}
		return true
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return false
}
