package durable

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"
	"testing/quick"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

type exactText string

type exactResult struct {
	Yes      bool
	Text     string `json:"text"`
	Named    exactText
	Maybe    string `json:",omitempty"`
	Tiny     int8
	Big      int64
	Natural  uint64 `json:"<&>"`
	Single   float32
	Real     float64
	Duration time.Duration
	Inner    struct{ A, B uint16 }
}

type zeroWhenNegative int

func (z zeroWhenNegative) IsZero() bool { return z < 0 }

// The first execution of a step returns what every replay decodes. Values of types that are not decoded in the first execution
// must decode to themselves.
func TestValuesThatAreNotDecodedDecodeToThemselves(t *testing.T) {
	if !decodesToItself(reflect.TypeFor[exactResult](), make(map[reflect.Type]bool)) {
		t.Fatal("exactResult is decoded")
	}
	check := func(v exactResult) bool {
		b, back, err := encodeAndDecode(v, 1<<20)
		if err != nil {
			t.Error(err)
			return false
		}
		replayed, err := decode[exactResult](b)
		return err == nil && replayed == v && *back == v && math.Signbit(replayed.Real) == math.Signbit(v.Real)
	}
	extremes := []exactResult{
		{},
		{Real: math.Copysign(0, -1), Single: math.MaxFloat32},
		{Text: "a\x00b\u2028<>&\"\\", Maybe: "null"},
		{Tiny: math.MinInt8, Big: math.MinInt64, Natural: math.MaxUint64, Real: math.SmallestNonzeroFloat64, Duration: math.MaxInt64},
	}
	for _, v := range extremes {
		if !check(v) {
			t.Errorf("%+v changed", v)
		}
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
	for _, bad := range []exactResult{{Text: "\xff"}, {Real: math.NaN()}, {Single: float32(math.Inf(1))}} {
		if _, _, err := encodeAndDecode(bad, 1<<20); !errors.Is(err, ErrNotEncodable) {
			t.Errorf("%+v, valid UTF-8 %v: %v", bad, utf8.ValidString(bad.Text), err)
		}
	}
}

// A type whose encoding loses or shares something is decoded in the first execution too.
func TestTypesThatJSONChangesAreDecoded(t *testing.T) {
	for _, v := range []any{
		struct{ hidden int }{},
		struct {
			Lost int `json:"-"`
		}{},
		struct{ exactResult }{},
		struct{ P *int }{},
		struct {
			Z zeroWhenNegative `json:",omitzero"`
		}{},
		struct{ S []int }{},
		struct{ A any }{},
		struct {
			F float64 `json:",format:nonfinite"`
		}{},
		time.Time{},
		uuid.UUID{},
		json.Number(""),
		json.RawMessage{},
		[]byte{},
		map[string]string{},
		[2]int{},
		new(int), complex(1, 2),
	} {
		if decodesToItself(reflect.TypeOf(v), make(map[reflect.Type]bool)) {
			t.Errorf("%T is not decoded", v)
		}
	}
}
