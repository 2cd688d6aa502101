// Package codec compresses and encrypts the payloads of runs before they reach the database.
//
//	keys, err := codec.Encrypt(codec.Key{ID: "2026-11", Secret: secret})
//	both := codec.Chain(codec.Compress(), keys)
//
// The first codec of a [Chain] encodes a payload first. Put the compressing codec before the encrypting one, because encrypted
// bytes do not compress.
//
// # Keys
//
// [Encrypt] encrypts payloads with its first key, and decrypts payloads with any of its keys. To rotate keys, first add the new
// key at the end in all processes, and then move the new key to the front in all processes. Keep an old key for as long as
// payloads exist that were encrypted with it.
package codec
