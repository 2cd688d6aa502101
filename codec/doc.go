// Package codec compresses and encrypts the payloads of runs before they reach the database.
//
//	keys, err := codec.Encrypt(codec.Key{ID: "2026-11", Secret: secret})
//	both := codec.Chain(codec.Compress(), keys)
//
// The first codec of a [Chain] encodes a payload first. Put the compressing codec before the encrypting one, because encrypted
// bytes do not compress.
//
// # Changing the codecs
//
// The bytes of each codec of this package begin with a mark of its own, so a codec decodes what it has encoded and leaves other
// payloads as they are. Codecs of this package can be added to a Chain, and their order can change, while runs are live. Compress
// can also be removed at any time: every codec of this package decompresses the payloads that Compress has encoded. Before you
// remove an encryption, wait until no payload is needed that it has encrypted. Payloads that need a codec which the process lacks
// return durable.ErrUnreadable, with the name of the codec.
//
// # Keys
//
// [Encrypt] encrypts payloads with its first key, and decrypts payloads with any of its keys. To rotate keys, first add the new
// key at the end in all processes, and then move the new key to the front in all processes. Keep an old key for as long as
// payloads exist that were encrypted with it.
package codec
