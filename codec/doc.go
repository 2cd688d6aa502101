// Package codec compresses and encrypts the payloads of runs before they reach the database.
//
//	keys, err := codec.Encrypt(codec.Key{ID: "2026-11", Secret: secret})
//	both := codec.Chain(codec.Compress(), keys)
//
// A Chain encodes with its first codec first. Put the compressing codec before the encrypting one, because encrypted bytes do not
// compress.
//
// # Keys
//
// The first key of [Encrypt] encrypts, and all its keys decrypt. To rotate keys, first add the new key at the end in all
// processes, and then move the new key to the front in all processes. Keep the old key for as long as payloads exist that the
// old key has encrypted.
package codec
