package coded

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/codec"
	"github.com/seed8ec063be/durable/internal/payload"
)

// A text of a user is encoded even if it begins as encoded texts do. One that is encoded already stays as it is.
func TestTexts(t *testing.T) {
	encryption, err := codec.Encrypt(codec.Key{ID: "a", Secret: make([]byte, codec.KeySize)})
	if err != nil {
		t.Fatal(err)
	}
	s, slot := New(nil, encryption), payload.Slot{Run: uuid.New(), Kind: payload.Reason}
	for _, plain := range []string{"secret", "encoded: secret", "encoded:c2VjcmV0", "encoded:encoded:secret", "a secret, encoded:"} {
		sealed, err := s.sealText(slot, plain)
		if err != nil || strings.Contains(sealed, "secret") || strings.Contains(sealed, "c2VjcmV0") {
			t.Errorf("%q became %q, %v", plain, sealed, err)
		}
		if got := s.openText("before: "+sealed+" (after)", slot); got != "before: "+plain+" (after)" {
			t.Errorf("%q came back as %q", plain, got)
		}
		if again, err := s.sealText(slot, sealed); again != sealed || err != nil {
			t.Errorf("%q was encoded twice: %q, %v", plain, again, err)
		}
		if got := s.openText(plain, slot); got != plain {
			t.Errorf("the text in clear %q was read as %q", plain, got)
		}
	}
}
