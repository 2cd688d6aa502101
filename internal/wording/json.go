package wording

import (
	"encoding/json/jsontext"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// The JSON of a value has the exported fields of its Go type, with names in snake_case. So it documents itself, and has every new
// field of the library. Fields that are empty, false, nil, or a time or duration of zero are left out; numbers are always there. Times are in RFC 3339, durations as in Go ("1m30s"), payloads as they are.

func EncodeJSON(v any, indent bool) (string, error) {
	var b strings.Builder
	opts := []jsontext.Options{jsontext.AllowDuplicateNames(true)} // payloads may have them
	if indent {
		opts = append(opts, jsontext.WithIndent("  "))
	}
	if err := encodeValue(jsontext.NewEncoder(&b, opts...), reflect.ValueOf(v)); err != nil {
		return "", fmt.Errorf("encode the output: %w", err)
	}
	return EscapeJSON(strings.TrimSuffix(b.String(), "\n")), nil
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	payloadType  = reflect.TypeFor[jsontext.Value]()
	errorType    = reflect.TypeFor[error]()
)

func encodeValue(enc *jsontext.Encoder, v reflect.Value) error {
	if !v.IsValid() {
		return enc.WriteToken(jsontext.Null)
	}
	switch v.Type() {
	case timeType:
		return enc.WriteToken(jsontext.String(v.Interface().(time.Time).Format(time.RFC3339Nano)))
	case durationType:
		return enc.WriteToken(jsontext.String(v.Interface().(time.Duration).String()))
	case payloadType:
		if v.Len() == 0 {
			return enc.WriteToken(jsontext.Null)
		}
		return enc.WriteValue(v.Interface().(jsontext.Value))
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return enc.WriteToken(jsontext.Null)
		}
		if v.Type() == errorType {
			return enc.WriteToken(jsontext.String(strings.ToValidUTF8(v.Interface().(error).Error(), "\uFFFD")))
		}
		return encodeValue(enc, v.Elem())
	case reflect.Struct:
		if err := enc.WriteToken(jsontext.BeginObject); err != nil {
			return err
		}
		if err := encodeFields(enc, v); err != nil {
			return err
		}
		return enc.WriteToken(jsontext.EndObject)
	case reflect.Slice, reflect.Array:
		if err := enc.WriteToken(jsontext.BeginArray); err != nil {
			return err
		}
		for i := range v.Len() {
			if err := encodeValue(enc, v.Index(i)); err != nil {
				return err
			}
		}
		return enc.WriteToken(jsontext.EndArray)
	case reflect.Map:
		return encodeMap(enc, v)
	case reflect.String:
		return enc.WriteToken(jsontext.String(strings.ToValidUTF8(v.String(), "\uFFFD")))
	case reflect.Bool:
		return enc.WriteToken(jsontext.Bool(v.Bool()))
	case reflect.Float32, reflect.Float64:
		return enc.WriteToken(jsontext.Float(v.Float()))
	}
	if v.CanInt() {
		return enc.WriteToken(jsontext.Int(v.Int()))
	}
	if v.CanUint() {
		return enc.WriteToken(jsontext.Uint(v.Uint()))
	}
	return fmt.Errorf("a value of type %v", v.Type())
}

// encodeFields writes the exported fields of a struct, and those of embedded structs among them.
func encodeFields(enc *jsontext.Encoder, v reflect.Value) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		value := v.Field(i)
		if f.Anonymous && value.Kind() == reflect.Struct {
			if err := encodeFields(enc, value); err != nil {
				return err
			}
			continue
		}
		if isOmitted(value) {
			continue
		}
		if err := enc.WriteToken(jsontext.String(snakeCase(f.Name))); err != nil {
			return err
		}
		if err := encodeValue(enc, value); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

func encodeMap(enc *jsontext.Encoder, v reflect.Value) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	values := make(map[string]reflect.Value, v.Len())
	for key, value := range v.Seq2() {
		values[key.String()] = value
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := enc.WriteToken(jsontext.String(key)); err != nil {
			return err
		}
		if err := encodeValue(enc, values[key]); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// isOmitted reports whether the JSON lacks a field with this value.
func isOmitted(v reflect.Value) bool {
	switch v.Type() {
	case timeType:
		return v.Interface().(time.Time).IsZero()
	case durationType:
		return v.IsZero()
	}
	switch v.Kind() {
	case reflect.Bool:
		return !v.Bool()
	case reflect.String, reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Pointer, reflect.Interface:
		return v.IsNil()
	case reflect.Func, reflect.Chan:
		return true
	}
	return false
}

// snakeCase returns the name of a Go field in snake_case: RunID is run_id, and DoneIDs is done_ids.
func snakeCase(name string) string {
	name = strings.ReplaceAll(name, "IDs", "Ids")
	runes := []rune(name)
	var b strings.Builder
	for i, r := range runes {
		if unicode.IsUpper(r) {
			endsWord := i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
			if endsWord {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
