package codec

import (
	"sync"

	"github.com/seed8ec063be/durable/internal/payload"
)

// A layer is a codec of this package. The bytes that it returns begin with a mark of its own, so it recognizes them.
type layer interface {
	payload.Codec
	// decodeOwn decodes bytes that the codec has encoded, and returns all other bytes as they are.
	decodeOwn(slot payload.Slot, b []byte) (_ []byte, found layers, err error)
}

// layers counts the codecs that have decoded a payload, and the codecs whose mark it did not carry.
type layers struct{ decoded, missing int }

// maxStrayLayers bounds how many layers decodeAll removes that are not where the codec would have put them.
const maxStrayLayers = 8

// markSize is how many bytes markOf returns.
const markSize = 2

// markOf returns how the bytes of a codec begin.
func markOf(by byte) []byte { return []byte{payload.Mark, by} }

// decodeAll decodes a payload that was encoded by the codec, by a part of it, or by its parts in another order. It also
// decompresses what the codec does not compress, because that needs no key: so compression can be added and removed while runs
// are live.
//
// It returns bytes that another codec has encoded as they are, because a codec of a user may stand between. payload.Open refuses
// them in the end.
func decodeAll(c layer, slot payload.Slot, b []byte) ([]byte, error) {
	b, found, err := c.decodeOwn(slot, b)
	usual := found.missing == 0
	for n := 0; err == nil && payload.IsEncoded(b) && n < maxStrayLayers; n++ {
		usual, found = false, layers{}
		if isCompressed(b) {
			b, err = decompressor().decompress(b)
		} else if b, found, err = c.decodeOwn(slot, b); found.decoded == 0 {
			break
		}
	}
	if err == nil && !usual && !payload.IsEncoded(b) {
		err = payload.CheckPlain(slot, b) // otherwise each codec of the process has found its mark
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

var decompressor = sync.OnceValue(func() *zstdCodec { return newCompress(MaxDecompressed) })

func isMarkedBy(by byte, b []byte) bool {
	return len(b) >= markSize && b[0] == payload.Mark && b[1] == by
}

func isCompressed(b []byte) bool {
	return isMarkedBy(payload.ByCompress, b) || isMarkedBy(payload.ByCompressPlain, b)
}
