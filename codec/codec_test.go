package codec

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/seed8ec063be/durable/internal/leaktest"
	"github.com/seed8ec063be/durable/internal/payload"
)

func TestMain(m *testing.M) { leaktest.Main(m.Run()) }

var here = payload.Slot{Run: uuid.MustParse("018f0000-0000-7000-8000-000000000001"), Kind: payload.Step, Name: "charge"}

func secret(b byte) []byte { return bytes.Repeat([]byte{b}, KeySize) }

func encryption(t testing.TB, keys ...Key) payload.Codec {
	t.Helper()
	c, err := Encrypt(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Each codec returns what it was given, and Encrypt leaves nothing of it readable.
func TestRoundTrip(t *testing.T) {
	enc := encryption(t, Key{"a", secret(1)})
	codecs := map[string]payload.Codec{"compress": Compress(), "encrypt": enc, "both": Chain(Compress(), enc), "none": Chain()}
	for name, c := range codecs {
		for _, plain := range []string{"", "1", `"a secret text"`, strings.Repeat(`"a secret text"`, 10000), string(make([]byte, 1<<16))} {
			before := []byte(plain)
			sealed, err := payload.Seal(c, here, before)
			if err != nil {
				t.Fatal(err)
			}
			if !payload.IsEncoded(sealed) || string(before) != plain {
				t.Errorf("%s: %d bytes: not marked, or the payload was changed", name, len(plain))
			}
			if (name == "encrypt" || name == "both") && bytes.Contains(sealed, []byte("secret")) {
				t.Errorf("%s: %d bytes: the text is readable", name, len(plain))
			}
			if len(plain) > 100 && (name == "compress" || name == "both") && len(sealed) > len(plain)/10 {
				t.Errorf("%s: %d bytes became %d", name, len(plain), len(sealed))
			}
			got, err := payload.Open(c, here, sealed)
			if err != nil || string(got) != plain || got == nil {
				t.Errorf("%s: %d bytes: %d bytes, %v", name, len(plain), len(got), err)
			}
		}
	}
}

// What a codec has not encoded is returned as it is, with and without a codec. Without one, encoded bytes are an error.
func TestOldPayloads(t *testing.T) {
	for _, c := range []payload.Codec{nil, Compress(), encryption(t, Key{"a", secret(1)})} {
		for _, old := range [][]byte{nil, {}, []byte("null"), []byte(`{"a":1}`)} {
			if got, err := payload.Open(c, here, old); err != nil || !bytes.Equal(got, old) || (got == nil) != (old == nil) {
				t.Errorf("%T: %q became %q, %v", c, old, got, err)
			}
		}
	}
	if sealed, err := payload.Seal(Compress(), here, nil); sealed != nil || err != nil {
		t.Errorf("a payload that is missing became %q, %v", sealed, err)
	}
	if _, err := payload.Open(nil, here, []byte{payload.Mark, 1, 0}); !errors.Is(err, payload.ErrNoCodec) {
		t.Errorf("without a codec: %v", err)
	}
	if _, err := payload.Open(Compress(), here, []byte{payload.Mark, 3, 0}); !errors.Is(err, payload.ErrDamaged) {
		t.Errorf("of another version: %v", err)
	}
}

// An encrypted payload decodes in its own slot only.
func TestSlots(t *testing.T) {
	c := encryption(t, Key{"a", secret(1)})
	slots := []payload.Slot{here}
	for _, change := range []func(*payload.Slot){
		func(s *payload.Slot) { s.Run[15]++ },
		func(s *payload.Slot) { s.Kind = payload.StepError },
		func(s *payload.Slot) { s.Kind, s.Name = payload.Output, "" },
		func(s *payload.Slot) { s.Kind, s.Name = s.Kind+"c", "harge" },
		func(s *payload.Slot) { s.Name = "refund" },
	} {
		other := here
		change(&other)
		slots = append(slots, other)
	}
	for i, from := range slots {
		sealed, err := payload.Seal(c, from, []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		for j, to := range slots {
			if _, err := payload.Open(c, to, sealed); (err == nil) != (i == j) || err != nil && !errors.Is(err, payload.ErrDamaged) {
				t.Errorf("from %v in %v: %v", from, to, err)
			}
		}
	}
}

// Keys are rotated without a moment in which a process cannot decode what another has encoded.
func TestRotation(t *testing.T) {
	a, b := Key{"a", secret(1)}, Key{"b", secret(2)}
	steps := []payload.Codec{encryption(t, a), encryption(t, a, b), encryption(t, b, a)}
	for i, from := range steps {
		sealed, err := payload.Seal(from, here, []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range steps[max(0, i-1):] {
			if got, err := payload.Open(to, here, sealed); string(got) != "1" || err != nil {
				t.Errorf("step %d: %q, %v", i, got, err)
			}
		}
	}
	sealed, err := payload.Seal(encryption(t, b), here, []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = payload.Open(encryption(t, a), here, sealed)
	if unknown, ok := errors.AsType[*payload.UnknownEncryptionKeyError](err); !ok || unknown.KeyID != "b" {
		t.Errorf("a key that is gone: %v", err)
	}
	if _, err = payload.Open(encryption(t, Key{"b", secret(3)}), here, sealed); !errors.Is(err, payload.ErrDamaged) {
		t.Errorf("another key with the same ID: %v", err)
	}
}

// Equal payloads have different ciphertexts, and each changed bit is noticed.
func TestTampering(t *testing.T) {
	c := encryption(t, Key{"a", secret(1)})
	first, _ := payload.Seal(c, here, []byte("1"))
	second, _ := payload.Seal(c, here, []byte("1"))
	if bytes.Equal(first, second) {
		t.Error("two ciphertexts are equal")
	}
	for i := range len(first) * 8 {
		changed := bytes.Clone(first)
		changed[i/8] ^= 1 << (i % 8)
		if got, err := payload.Open(c, here, changed); err == nil && i >= 8 { // without the mark it is no encoded payload
			t.Errorf("bit %d was changed: %q", i, got)
		}
	}
	for n := 1; n < len(first); n++ {
		if _, err := payload.Open(c, here, first[:n]); err == nil {
			t.Errorf("cut after %d bytes: no error", n)
		}
	}
}

// The cipher agrees with the test vectors of its specification.
func TestXAES(t *testing.T) {
	nonce := []byte("ABCDEFGHIJKLMNOPQRSTUVWX")
	for _, v := range []struct {
		key              byte
		additional, want string
	}{
		{1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		x := newExtendedGCM(secret(v.key))
		sealed := x.deriveAEAD(nonce).Seal(nil, nonce[prefixSize:], []byte("XAES-256-GCM"), []byte(v.additional))
		if hex.EncodeToString(sealed) != v.want {
			t.Errorf("key %d: %x, want %s", v.key, sealed, v.want)
		}
		if got, err := x.openSealed(nonce, sealed, []byte(v.additional)); string(got) != "XAES-256-GCM" || err != nil {
			t.Errorf("key %d: %q, %v", v.key, got, err)
		}
	}
}

// A prefix is used for a bounded number of payloads, and old ones go on to decrypt.
func TestPrefixes(t *testing.T) {
	x := newExtendedGCM(secret(1))
	seal := func() []byte {
		nonce := make([]byte, nonceSize)
		return x.fillNonce(nonce).Seal(nonce, nonce[prefixSize:], []byte("1"), nil)
	}
	first, second := seal(), seal()
	if !bytes.Equal(first[:prefixSize], second[:prefixSize]) || bytes.Equal(first[:nonceSize], second[:nonceSize]) {
		t.Error("the nonces do not begin alike, or are equal")
	}
	x.prefixUses = prefixUses
	third := seal()
	if bytes.Equal(first[:prefixSize], third[:prefixSize]) {
		t.Error("the prefix is used further")
	}
	for range maxKeptPrefixes + 1 {
		x.prefixUses = prefixUses
		if b := seal(); len(x.derivedAEADs) > maxKeptPrefixes {
			t.Fatalf("%d prefixes are kept", len(x.derivedAEADs))
		} else if _, err := x.openSealed(first[:nonceSize], first[nonceSize:], nil); err != nil {
			t.Fatal(err)
		} else if _, err := newExtendedGCM(secret(1)).openSealed(b[:nonceSize], b[nonceSize:], nil); err != nil {
			t.Fatal(err)
		}
	}
}

// A small payload that decompresses to a very large one is refused before it takes the memory.
func TestBomb(t *testing.T) {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var bomb []byte // frames one after the other decompress to one text
	const most = 1 << 20
	frame := w.EncodeAll(make([]byte, most/4), nil)
	for range 5 {
		bomb = append(bomb, frame...)
	}
	if _, err := newCompress(most).Decode(here, append(markOf(payload.ByCompress), bomb[:4*len(frame)]...)); err != nil {
		t.Errorf("a payload of the largest size: %v", err)
	}
	if _, err := newCompress(most).Decode(here, append(markOf(payload.ByCompress), bomb...)); !errors.Is(err, payload.ErrDamaged) || !errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		t.Errorf("a bomb of %d bytes: %v", len(bomb), err)
	}
}

// Keys that cannot be used are refused, and no text shows a secret.
func TestKeys(t *testing.T) {
	for name, keys := range map[string][]Key{
		"none": nil, "short": {{"a", secret(1)[:16]}}, "no ID": {{"", secret(1)}}, "long ID": {{strings.Repeat("x", 65), secret(1)}},
		"twice": {{"a", secret(1)}, {"a", secret(2)}},
	} {
		if c, err := Encrypt(keys...); !errors.Is(err, ErrInvalidKey) || c != nil {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	k := Key{"a", []byte("correct horse battery staple 32b")}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, k); strings.Contains(text, "horse") || !strings.Contains(text, `"a"`) {
			t.Errorf("%s: %s", verb, text)
		}
	}
}

// Codecs are used by many goroutines at once.
func TestConcurrentUse(t *testing.T) {
	c := Chain(Compress(), encryption(t, Key{"a", secret(1)}))
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			plain := strings.Repeat(fmt.Sprint(i, " "), 200*i)
			for range 20 {
				sealed, err := payload.Seal(c, here, []byte(plain))
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := payload.Open(c, here, sealed); string(got) != plain || err != nil {
					t.Errorf("%d: %d bytes, %v", i, len(got), err)
				}
			}
		})
	}
	all.Wait()
}

// Those without a codec pay nothing.
func TestNoCodecAllocatesNothing(t *testing.T) {
	plain := []byte(`{"a":1}`)
	if n := testing.AllocsPerRun(100, func() {
		b, _ := payload.Seal(nil, here, plain)
		_, _ = payload.Open(nil, here, b)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever bytes are stored, decoding returns a payload or an error, and only what was encoded decodes.
func FuzzDecode(f *testing.F) {
	enc := encryption(f, Key{"a", secret(1)})
	for _, c := range []payload.Codec{Compress(), enc, Chain(Compress(), enc)} {
		for _, plain := range []string{"", "1", strings.Repeat("ab", 100)} {
			sealed, err := payload.Seal(c, here, []byte(plain))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(sealed)
		}
	}
	both := Chain(Compress(), enc)
	f.Fuzz(func(t *testing.T, stored []byte) {
		if got, err := payload.Open(enc, here, stored); err == nil && payload.IsEncoded(stored) && len(got) > len(stored) {
			t.Errorf("%d bytes decrypt to %d", len(stored), len(got))
		}
		_, _ = payload.Open(both, here, stored)
		if payload.IsEncoded(stored) {
			return // no payload of a user begins with the mark
		}
		sealed, err := payload.Seal(both, here, stored)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := payload.Open(both, here, sealed); err != nil || !bytes.Equal(got, stored) {
			t.Errorf("%d bytes became %d: %v", len(stored), len(got), err)
		}
	})
}

func BenchmarkBoth(b *testing.B) {
	enc := encryption(b, Key{"a", secret(1)})
	for name, c := range map[string]payload.Codec{"compress": Compress(), "encrypt": enc, "both": Chain(Compress(), enc)} {
		for _, size := range []int{200, 4096} {
			plain := []byte(strings.Repeat(`{"order":42,"name":"ada"}`, size/25))
			b.Run(fmt.Sprint(name, "/", size), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					sealed, err := payload.Seal(c, here, plain)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := payload.Open(c, here, sealed); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
