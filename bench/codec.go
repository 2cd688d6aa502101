package main

import (
	"bytes"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
	"github.com/seed8ec063be/durable/codec"
)

// codecCallers is the number of concurrent callers in mode codec.
const codecCallers = 100

// codecs measures the local path with a codec that compresses and encrypts, and without one, in turns.
func (b *bench) codecs(at *site) error {
	encryption, err := codec.Encrypt(codec.Key{ID: "bench", Secret: bytes.Repeat([]byte{1}, codec.KeySize)})
	if err != nil {
		return err
	}
	both := codec.Chain(codec.Compress(), encryption)
	defer func() { b.configure = nil }()
	samples := map[string][]*sample{}
	for range b.options.rounds {
		for _, name := range []string{"plain", "codec"} {
			if b.configure = nil; name == "codec" {
				b.configure = func(c *durable.Config) { c.Codec = both }
			}
			if err := b.makeTables(at); err != nil {
				return err
			}
			if err := b.pause(b.loadPause()); err != nil {
				return err
			}
			s, err := b.path(at, pathLocal, b.callerCount(codecCallers), 0)
			if err != nil {
				return err
			}
			samples[name] = append(samples[name], s)
		}
	}
	encoded, plain := row(at.store, "codec", b.callerCount(codecCallers), samples), row(at.store, "plain", b.callerCount(codecCallers), samples)
	b.add(&result.Row{Mode: "codec", Store: at.store, Path: pathLocal, C: b.callerCount(codecCallers), Figures: []result.Figure{
		{Name: "payload_bytes", Value: result.Number(b.payload)},
		{Name: "wf_per_s", Value: encoded.Get("wf_per_s")},
		{Name: "plain_wf_per_s", Value: plain.Get("wf_per_s")},
		{Name: "plain_ratio", Value: encoded.Get("wf_per_s") / plain.Get("wf_per_s")},
		{Name: "p99_ms", Value: encoded.Get("p99_ms")},
		{Name: "plain_p99_ms", Value: plain.Get("p99_ms")},
	}})
	return nil
}
