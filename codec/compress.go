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

type zstdCodec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// Compress returns a codec that compresses payloads with Zstandard. The codec stores a payload as it is if compression would
// not make the payload smaller. The codec of Compress starts no goroutines and need not be closed.
func Compress() payload.Codec { return newCompress(MaxDecompressed) }

func newCompress(most uint64) *zstdCodec {
	// Both are used for whole payloads only (EncodeAll, DecodeAll), which starts no goroutines. The options are valid, so
	// there are no errors.
	encoder, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	decoder, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(most), zstd.WithDecoderLowmem(true))
	return &zstdCodec{encoder, decoder}
}

// Encode implements the codec.
func (c *zstdCodec) Encode(_ payload.Slot, plain []byte) ([]byte, error) {
	if len(plain) >= minCompressed {
		b := append(make([]byte, 0, markSize+len(plain)), payload.Mark, payload.ByCompress)
		if b = c.encoder.EncodeAll(plain, b); len(b) < markSize+len(plain) {
			return b, nil
		}
	}
	return slices.Concat(markOf(payload.ByCompressPlain), plain), nil
}

// Decode implements the codec.
func (c *zstdCodec) Decode(slot payload.Slot, encoded []byte) ([]byte, error) {
	return decodeAll(c, slot, encoded)
}

func (c *zstdCodec) decodeOwn(_ payload.Slot, b []byte) (_ []byte, found layers, err error) {
	if !isCompressed(b) {
		return b, layers{missing: 1}, nil
	}
	b, err = c.decompress(b)
	return b, layers{decoded: 1}, err
}

// decompress decodes bytes for which isCompressed is true.
func (c *zstdCodec) decompress(encoded []byte) ([]byte, error) {
	if encoded[1] == payload.ByCompressPlain {
		return encoded[markSize:], nil
	}
	plain, err := c.decoder.DecodeAll(encoded[markSize:], nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", payload.ErrDamaged, err)
	}
	return plain, nil
}
