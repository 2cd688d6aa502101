package ui

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"strings"
)

// cursorCipher creates cursors for requests that may not see all runs. The cursor of an event or a run names the run, so the cursor of a hidden run
// must not be shown. If a page ends with hidden events or runs, its cursor consists of the cursor of the last visible one, a dot, and the encrypted
// cursor of the last hidden one. A process that cannot decrypt the second part, because another process has encrypted it or this process has
// restarted, continues after the last visible event or run: then only hidden ones are read twice.
type cursorCipher struct{ box cipher.AEAD }

func newCursorCipher() cursorCipher {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // no error for a key of 32 bytes
	}
	box, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // no error for AES
	}
	return cursorCipher{box}
}

// encrypt returns the cursor of a page that ends with a hidden event or run.
func (c cursorCipher) encrypt(visible, hidden string) string {
	return visible + "." + base64.RawURLEncoding.EncodeToString(c.box.Seal(nil, nil, []byte(hidden), nil))
}

// decrypt returns the cursor of the last visible event or run, and the one at which the page begins.
func (c cursorCipher) decrypt(cursor string) (visible, at string) {
	visible, sealed, isSealed := strings.Cut(cursor, ".")
	if !isSealed {
		return cursor, cursor
	}
	text, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return visible, visible
	}
	hidden, err := c.box.Open(nil, nil, text, nil)
	if err != nil {
		return visible, visible
	}
	return visible, string(hidden)
}
