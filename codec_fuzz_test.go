package durable

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// fieldResult is a result of a step, with one field of each type that JSON is known to change.
type fieldResult struct {
	Text    string            `json:"text"`
	Big     int64             `json:"big"`
	Natural uint64            `json:"natural"`
	Real    float64           `json:"real"`
	Raw     []byte            `json:"raw"`
	Words   []string          `json:"words"`
	Table   map[string]string `json:"table"`
	Wait    time.Duration     `json:"wait"`
	At      time.Time         `json:"at"`
	Any     any               `json:"any"`
	Inner   *fieldResult      `json:"inner"`
}

// A value that is encoded decodes to the same value, or is refused.
func FuzzRoundTrip(f *testing.F) {
	f.Add("text", int64(1<<53+1), uint64(math.MaxUint64), 0.1, []byte{0, 255}, byte(0))
	f.Add("", int64(math.MinInt64), uint64(0), math.Inf(1), []byte(nil), byte(1))
	f.Add("\xff", int64(-1), uint64(1), math.NaN(), []byte{}, byte(2))
	f.Add("a\x00b\u2028<>&", int64(0), uint64(1<<63), math.Copysign(0, -1), []byte("x"), byte(7))
	f.Fuzz(func(t *testing.T, text string, big int64, natural uint64, real float64, raw []byte, shape byte) {
		v := fieldResult{
			Text: text, Big: big, Natural: natural, Real: real, Raw: raw, Wait: time.Duration(big),
			At: time.Unix(big%1e11, int64(natural%1e9)).UTC(),
		}
		switch shape % 4 {
		case 0:
			v.Words, v.Table, v.Any = []string{text, ""}, map[string]string{text: text, "k": ""}, map[string]any{"n": big, "list": []any{}}
		case 1:
			v.Words, v.Table, v.Any = []string{}, map[string]string{}, natural
		case 2:
			v.Any = []any{text, real, true, nil, big}
		default:
			v.Inner = &fieldResult{Text: text, Any: text}
		}
		b, back, err := encodeAndDecode(v, 1<<20)
		encodable := utf8.ValidString(text) && !math.IsNaN(real) && !math.IsInf(real, 0) && v.At.Year() >= 0 && v.At.Year() <= 9999
		switch {
		case err != nil && encodable:
			t.Fatalf("refused: %v", err)
		case err != nil && !errors.Is(err, ErrNotEncodable):
			t.Fatalf("got %v, want ErrNotEncodable", err)
		case err != nil:
			return
		case !encodable:
			t.Fatalf("%q was encoded", b)
		}
		// A value of type any holds a number by its value, not by its type.
		anyway := back.Any
		back.Any, v.Any = nil, nil
		if !reflect.DeepEqual(*back, v) || math.Signbit(back.Real) != math.Signbit(v.Real) {
			t.Fatalf("%+v came back as %+v", v, *back)
		}
		back.Any = anyway
		again, err := encode(back, 1<<20)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%s is encoded again as %s, %v", b, again, err)
		}
	})
}

// For any bytes in a payload's column, decoding returns an error, or a value that encodes and decodes to the same value. No digit
// of an integer is lost.
func FuzzDecodeAny(f *testing.F) {
	for _, seed := range []string{
		`9007199254740993`, `-9223372036854775808`, `18446744073709551615`, `18446744073709551616`, `1e400`, `1.0`, `-0`, `1e2`, `[1,{"a":9007199254740993}]`,
		`1000000000000000000000`, `1234567890123456800`, `"\ud800"`, `{"a":1,"a":2}`, `nul`, ``, ` null `, `[`, "\xff", strings.Repeat("[", 2000), `1E5`, `-0.0`, `123456789012345678901234567890`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := decode[any](b)
		if err != nil {
			return
		}
		if text := strings.TrimSpace(string(b)); integer(text) {
			switch n := v.(type) {
			case int64, uint64:
			case float64:
				if want, ok := new(big.Int).SetString(text, 10); ok && (want.IsInt64() || want.IsUint64()) && new(big.Float).SetInt(want).Cmp(big.NewFloat(n)) != 0 {
					t.Fatalf("%s was read as %.0f", text, n)
				}
			default:
				t.Fatalf("%s was read as a %T", text, v)
			}
		}
		stored, err := encode(&v, 1<<24)
		if err != nil {
			t.Fatalf("%q was read as %#v, which cannot be encoded: %v", b, v, err)
		}
		// A float without a fraction may be encoded as an integer, and then stays an integer.
		back, err := decode[any](stored)
		if err != nil {
			t.Fatalf("%q was read as %#v, stored as %s, and not read again: %v", b, v, stored, err)
		}
		again, err := encode(&back, 1<<24)
		if err != nil || !bytes.Equal(again, stored) {
			t.Fatalf("%q was stored as %s, read as %#v, and stored as %s, %v", b, stored, back, again, err)
		}
		if last, err := decode[any](again); err != nil || !reflect.DeepEqual(last, back) {
			t.Fatalf("%q was read as %#v, and again as %#v, %v", stored, back, last, err)
		}
		if !jsontext.Value(stored).IsValid() {
			t.Fatalf("%q is no JSON", stored)
		}
		// A type that contains an any and a type that contains none decode the same text.
		for _, into := range []any{new(map[string]any), new([]any), new(fieldResult), new(string), new(int64), new([]byte)} {
			_ = decodeInto(b, &into)
		}
	})
}

// integer reports whether the text is an integer in its canonical form.
func integer(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == "" && (digits == "0" || digits[0] != '0')
}
