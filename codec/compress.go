package codec

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/seed8ec063be/durable/internal/payload"
)

// MaxDecompressed is the largest size to which [Compress] decompresses a payload, in bytes. The library records no payload that
// is larger than MaxDecompressed.
const MaxDecompressed = 512 << 20

// minCompressed is the size in bytes below which compression is not tried: zstd adds about 15 bytes.
const minCompressed = 64

// The first byte of what Compress returns.
const (
	headerPlain      = 0
	headerCompressed = 1
)

type zstdCodec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// Compress returns a codec that compresses payloads with Zstandard. The codec stores a payload as it is if compression would
// not make the payload smaller. The codec of Compress starts no goroutines and need not be closed.
func Compress() payload.Codec { return newCompress(MaxDecompressed) }

func newCompress(most uint64) payload.Codec {
	// Both are used for whole payloads only (EncodeAll, DecodeAll), which starts no goroutines. The options are valid, so
	// there are no errors.
	encoder, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	decoder, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(most), zstd.WithDecoderLowmem(true))
	return &zstdCodec{encoder, decoder}
}

// Encode implements the codec.
func (c *zstdCodec) Encode(_ payload.Slot, plain []byte) ([]byte, error) {
	if len(plain) >= minCompressed {
		b := make([]byte, 1, 1+len(plain))
		b[0] = headerCompressed
		if b = c.encoder.EncodeAll(plain, b); len(b) < 1+len(plain) {
			return b, nil
		}
	}
	return slices.Concat([]byte{headerPlain}, plain), nil
}

// Decode implements the codec.
func (c *zstdCodec) Decode(_ payload.Slot, encoded []byte) ([]byte, error) {
	switch {
	case len(encoded) > 0 && encoded[0] == headerPlain:
		return encoded[1:], nil
	case len(encoded) > 0 && encoded[0] == headerCompressed:
		plain, err := c.decoder.DecodeAll(encoded[1:], nil)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", payload.ErrDamaged, err)
		}
		return plain, nil
	}
	return nil, fmt.Errorf("%w: it was not encoded by Compress: use the codecs with which it was encoded, in the same order", payload.ErrDamaged)
}
