package codec

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable/internal/payload"
)

// xorCodec is a codec of a user, whose bytes have no mark.
type xorCodec struct{}

func (xorCodec) Encode(_ payload.Slot, b []byte) ([]byte, error) {
	out := make([]byte, len(b))
	for i := range b {
		out[i] = b[i] ^ 0xFF
	}
	return out, nil
}

func (c xorCodec) Decode(slot payload.Slot, b []byte) ([]byte, error) { return c.Encode(slot, b) }

// wrapped hides from a Chain that a codec is one of this package.
type wrapped struct{ payload.Codec }

// Compression can be added to a chain and removed, encryption can be added, and the order can change: what was written before is
// readable. What needs a codec that the process lacks is unreadable, and the error names the codec.
func TestChangedChains(t *testing.T) {
	enc := encryption(t, Key{"a", secret(1)})
	chains := map[string]payload.Codec{
		"none": Chain(), "compress": Compress(), "encrypt": enc, "both": Chain(Compress(), enc), "reversed": Chain(enc, Compress()),
		"nested": Chain(Chain(Compress()), Chain(Chain(), enc)), "twice": Chain(Compress(), Compress(), enc), "wrapped": wrapped{Chain(Compress(), enc)},
		"wrapped parts": Chain(wrapped{Compress()}, wrapped{enc}),
	}
	encrypts := func(name string) bool { return name != "none" && name != "compress" }
	for _, plain := range []string{"1", `"a text"`, `"` + strings.Repeat("a long text ", 100) + `"`} {
		for from, c := range chains {
			sealed, err := payload.Seal(c, here, []byte(plain))
			if err != nil {
				t.Fatal(err)
			}
			for to, d := range chains {
				got, err := payload.Open(d, here, sealed)
				switch {
				case encrypts(from) && !encrypts(to):
					if !errors.Is(err, payload.ErrUnreadable) || !strings.Contains(err.Error(), "codec.Encrypt") {
						t.Errorf("from %s to %s: %q, %v", from, to, got, err)
					}
				case to == "wrapped parts" && errors.Is(err, payload.ErrUnreadable) && from != to: // a Chain cannot know what the codecs of a user skip
				case string(got) != plain || err != nil:
					t.Errorf("from %s to %s: %q, %v", from, to, got, err)
				}
			}
		}
	}
}

// A codec of a user in a chain decodes whatever bytes it has encoded. Bytes that it has encoded are never taken for a payload by the
// others.
func TestACodecOfAUserInAChain(t *testing.T) {
	enc := encryption(t, Key{"a", secret(1)})
	own := xorCodec{}
	for i, c := range []payload.Codec{
		own, Chain(own), Chain(own, enc), Chain(enc, own), Chain(Compress(), own, enc), Chain(own, Compress(), own, enc, own), Chain(enc, wrapped{Compress()}),
	} {
		for n := range 300 {
			plain := fmt.Sprintf(`"%s%d"`, strings.Repeat("x", n), n)
			sealed, err := payload.Seal(c, here, []byte(plain))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := payload.Open(c, here, sealed); string(got) != plain || err != nil {
				t.Fatalf("chain %d: %q, %v", i, got, err)
			}
			for _, d := range []payload.Codec{Compress(), enc, Chain(Compress(), enc)} {
				if got, err := payload.Open(d, here, sealed); i < 2 && !errors.Is(err, payload.ErrUnreadable) {
					t.Fatalf("chain %d without the codec: %q, %v", i, got, err)
				}
			}
		}
	}
}

// A payload cannot be damaged so that a chain with a missing layer returns other bytes than a payload.
func TestTamperingWithChangedChains(t *testing.T) {
	enc := encryption(t, Key{"a", secret(1)})
	for _, plain := range []string{"1", `"` + strings.Repeat("a long text ", 20) + `"`} {
		for _, c := range []payload.Codec{enc, Chain(Compress(), enc)} {
			sealed, err := payload.Seal(c, here, []byte(plain))
			if err != nil {
				t.Fatal(err)
			}
			for i := 8; i < len(sealed)*8; i++ {
				changed := append([]byte(nil), sealed...)
				changed[i/8] ^= 1 << (i % 8)
				for _, d := range []payload.Codec{enc, Compress(), Chain(Compress(), enc), Chain(enc, Compress())} {
					if got, err := payload.Open(d, here, changed); !errors.Is(err, payload.ErrUnreadable) {
						t.Errorf("bit %d was changed: %q, %v", i, got, err)
					}
				}
			}
		}
	}
}
