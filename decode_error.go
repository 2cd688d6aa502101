package durable

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"
)

// decodeError is the error for JSON that does not decode into a type. Its text quotes nothing of the JSON: the text is recorded, logged, and
// shown to people who may not see payloads.
type decodeError struct {
	text string
	err  error // its text may quote the JSON
}

func (e *decodeError) Error() string { return e.text }
func (e *decodeError) Unwrap() error { return e.err }

// newDecodeError returns the error for JSON that does not decode into a value of type t.
func newDecodeError(t reflect.Type, err error) error {
	return &decodeError{fmt.Sprintf("decode into %v: %s", t, textWithoutValue(t, err)), err}
}

// typesWithMap caches which types can contain a map, whose keys are part of the path to a value.
var typesWithMap sync.Map // reflect.Type to bool

// textWithoutValue returns the text of an error of encoding/json/v2 for a value of type t, without what the text quotes of the JSON.
func textWithoutValue(t reflect.Type, err error) string {
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return describeForeignError(err)
	}
	own := *semantic
	own.JSONValue = nil
	if checkTypeCached(&typesWithMap, t, containsMap) {
		own.JSONPointer = ""
	}
	if own.Err != nil && (own.GoType == nil || decodesItself(own.GoType)) {
		own.Err = errors.New(describeForeignError(own.Err))
	}
	return own.Error()
}

// decodesItself reports whether errors that concern the type may come from methods of the type, whose texts may quote anything.
func decodesItself(t reflect.Type) bool {
	return slices.ContainsFunc(customDecodings, reflect.PointerTo(t).Implements)
}

// describeForeignError describes an error whose text may quote the value.
func describeForeignError(err error) string {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Sprintf("invalid JSON after offset %d", e.ByteOffset)
	}
	if e, ok := errors.AsType[*time.ParseError](err); ok {
		return fmt.Sprintf("not a time of the layout %q", e.Layout)
	}
	return fmt.Sprintf("its decoding returned an error of type %T, whose text is left out because it may quote the value", err)
}

// containsMap reports whether values of the type can contain a map.
func containsMap(t reflect.Type, seen map[reflect.Type]bool) bool {
	return containsKind(t, seen, reflect.Map, reflect.Interface)
}
