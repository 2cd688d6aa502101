package codec

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/seed8ec063be/durable/internal/payload"
)

// KeySize is the size of a [Key] in bytes.
const KeySize = 32

// maxKeyID is the longest ID of a key in bytes.
const maxKeyID = 64

// ErrInvalidKey is returned by [Encrypt] for keys that cannot be used.
var ErrInvalidKey = errors.New("codec: invalid key")

// Key is an encryption key for [Encrypt], with a name.
type Key struct {
	// ID is the name of the key, of at most 64 bytes. The ID is stored in clear with each payload.
	ID string
	// Secret holds 32 random bytes.
	Secret []byte
}

// String returns the ID of the key, and never its secret.
func (k Key) String() string { return fmt.Sprintf("key %q", k.ID) }

// GoString returns the same text as [Key.String].
func (k Key) GoString() string { return k.String() }

type encryptionCodec struct {
	encryptionKeyID string // the ID of the key that encrypts
	keys            map[string]*extendedGCM
}

// Encrypt returns a codec that encrypts payloads with XAES-256-GCM, which is AES-256-GCM with random nonces of 192 bits
// (https://c2sp.org/XAES-256-GCM). The codec of Encrypt encrypts with the first key, and decrypts with any of the keys. Each
// payload is bound to its run and to the name of its call, so a payload that was copied to another call does not decode.
// Encrypt returns [ErrInvalidKey] if there is no key, two keys have the same ID, an ID is empty or too long, or a secret does
// not have [KeySize] bytes.
func Encrypt(keys ...Key) (payload.Codec, error) {
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: there is none: pass the key that encrypts", ErrInvalidKey)
	}
	c := &encryptionCodec{encryptionKeyID: keys[0].ID, keys: make(map[string]*extendedGCM, len(keys))}
	for _, k := range keys {
		switch {
		case k.ID == "" || len(k.ID) > maxKeyID:
			return nil, fmt.Errorf("%w: an ID has %d bytes: it needs 1 to %d", ErrInvalidKey, len(k.ID), maxKeyID)
		case len(k.Secret) != KeySize:
			return nil, fmt.Errorf("%w: the secret of %q has %d bytes: it needs %d random bytes", ErrInvalidKey, k.ID, len(k.Secret), KeySize)
		case c.keys[k.ID] != nil:
			return nil, fmt.Errorf("%w: there are two keys with the ID %q: give each its own", ErrInvalidKey, k.ID)
		}
		c.keys[k.ID] = newExtendedGCM(k.Secret)
	}
	return c, nil
}

// Encode implements the codec. The result is the mark, the length of the key's ID, the ID, the nonce and the ciphertext.
func (c *encryptionCodec) Encode(slot payload.Slot, plain []byte) ([]byte, error) {
	b := make([]byte, 0, markSize+1+len(c.encryptionKeyID)+nonceSize+len(plain)+tagSize)
	b = append(b, payload.Mark, payload.ByEncrypt, byte(len(c.encryptionKeyID)))
	b = append(b, c.encryptionKeyID...)
	nonce := b[len(b) : len(b)+nonceSize]
	key := c.keys[c.encryptionKeyID]
	aead := key.fillNonce(nonce)
	return aead.Seal(b[:len(b)+nonceSize], nonce[prefixSize:], plain, slot.AdditionalData()), nil
}

// Decode implements the codec.
func (c *encryptionCodec) Decode(slot payload.Slot, encoded []byte) ([]byte, error) {
	return decodeAll(c, slot, encoded)
}

func (c *encryptionCodec) decodeOwn(slot payload.Slot, b []byte) (_ []byte, found layers, err error) {
	if !isMarkedBy(payload.ByEncrypt, b) {
		return b, layers{missing: 1}, nil
	}
	b, err = c.decrypt(slot, b[markSize:])
	return b, layers{decoded: 1}, err
}

// decrypt decodes what follows the mark.
func (c *encryptionCodec) decrypt(slot payload.Slot, encoded []byte) ([]byte, error) {
	if len(encoded) == 0 || len(encoded) < 1+int(encoded[0])+nonceSize+tagSize {
		return nil, fmt.Errorf("%w: it is cut", payload.ErrDamaged)
	}
	id, rest := string(encoded[1:1+encoded[0]]), encoded[1+int(encoded[0]):]
	key := c.keys[id]
	if key == nil {
		return nil, &payload.UnknownEncryptionKeyError{KeyID: id}
	}
	plain, err := key.openSealed(rest[:nonceSize], rest[nonceSize:], slot.AdditionalData())
	if err != nil {
		return nil, fmt.Errorf("%w: the key %q does not open it: it was changed, moved from another place, or encrypted with another key of this ID", payload.ErrDamaged, id)
	}
	return plain, nil
}

const (
	nonceSize  = 24
	prefixSize = 12 // of a nonce; the prefix and the key give the key of AES-256-GCM
	tagSize    = 16

	// prefixUses is how many payloads a process encrypts with one prefix. The rest of the nonce is random, so the probability that two
	// of them have the same nonce is 2^-49.
	prefixUses = 1 << 24

	maxKeptPrefixes = 256 // prefixes whose keys a process keeps for decryption
)

// extendedGCM is XAES-256-GCM with one key. The first half of the nonce and the key give the key of AES-256-GCM, whose nonce
// is the second half. With the 96-bit nonces of AES-256-GCM alone, a key could only encrypt some 2^32 payloads.
//
// To derive a key costs more than to encrypt a small payload. So a process keeps the prefix of its nonces for many payloads, and keeps
// the keys of the prefixes that it decrypts.
type extendedGCM struct {
	block cipher.Block
	k1    [aes.BlockSize]byte // the subkey K1 of CMAC

	mu           sync.Mutex
	noncePrefix  [prefixSize]byte // of the nonces of this process
	aead         cipher.AEAD      // for the prefix; nil: there is none yet
	prefixUses   int              // of the prefix
	derivedAEADs map[[prefixSize]byte]cipher.AEAD
}

// fillNonce fills in a new nonce, and returns what encrypts with it and the rest of the nonce.
func (x *extendedGCM) fillNonce(nonce []byte) cipher.AEAD {
	rand.Read(nonce) // never returns an error
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.aead == nil || x.prefixUses >= prefixUses {
		copy(x.noncePrefix[:], nonce)
		x.aead, x.prefixUses = x.deriveAEAD(nonce), 0
	}
	x.prefixUses++
	copy(nonce, x.noncePrefix[:])
	return x.aead
}

// aeadForPrefix returns what decrypts payloads whose nonces begin as this one.
func (x *extendedGCM) aeadForPrefix(nonce []byte) cipher.AEAD {
	prefix := [prefixSize]byte(nonce)
	x.mu.Lock()
	defer x.mu.Unlock()
	if prefix == x.noncePrefix && x.aead != nil {
		return x.aead
	}
	aead := x.derivedAEADs[prefix]
	if aead == nil {
		if len(x.derivedAEADs) >= maxKeptPrefixes || x.derivedAEADs == nil {
			x.derivedAEADs = make(map[[prefixSize]byte]cipher.AEAD)
		}
		aead = x.deriveAEAD(nonce)
		x.derivedAEADs[prefix] = aead
	}
	return aead
}

func newExtendedGCM(secret []byte) *extendedGCM {
	block, err := aes.NewCipher(secret)
	if err != nil {
		panic(err) // the caller has checked the size
	}
	x := &extendedGCM{block: block}
	block.Encrypt(x.k1[:], x.k1[:])
	carry := -(x.k1[0] >> 7)
	for i := range x.k1 {
		x.k1[i] <<= 1
		if i+1 < len(x.k1) {
			x.k1[i] |= x.k1[i+1] >> 7
		}
	}
	x.k1[len(x.k1)-1] ^= carry & 0x87
	return x
}

// deriveAEAD returns AES-256-GCM with the key for nonces that begin with the first half of this one.
func (x *extendedGCM) deriveAEAD(nonce []byte) cipher.AEAD {
	var key [KeySize]byte
	for i := range byte(2) {
		half := key[i*aes.BlockSize:][:aes.BlockSize]
		copy(half, []byte{0, i + 1, 'X', 0})
		copy(half[4:], nonce[:12])
		for j := range half {
			half[j] ^= x.k1[j]
		}
		x.block.Encrypt(half, half)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the key has the right size
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the right block size
	}
	return gcm
}

func (x *extendedGCM) openSealed(nonce, sealed, additional []byte) ([]byte, error) {
	return x.aeadForPrefix(nonce).Open(nil, nonce[prefixSize:], sealed, additional)
}
