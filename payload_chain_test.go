package durable_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/codec"
)

// encryptionOnly returns the codec of bothCodecs without the compression.
func encryptionOnly(t testing.TB, keyID string) durable.Codec {
	t.Helper()
	c, err := codec.Encrypt(codec.Key{ID: keyID, Secret: bytes.Repeat([]byte(keyID), codec.KeySize)[:codec.KeySize]})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Compression is added and removed, and encryption is added, while a run is live: the run is continued, and its start and its signals
// are found again.
func TestCodecsOfAChainChangeUnderALiveRun(t *testing.T) {
	encrypt, both := encryptionOnly(t, "a"), bothCodecs(t, "a")
	for what, c := range map[string]struct{ from, to durable.Codec }{
		"compression is added": {encrypt, both}, "compression is removed": {both, encrypt}, "encryption is added": {codec.Compress(), both},
		"the order is corrected": {codec.Chain(encrypt, codec.Compress()), both}, "compression is replaced": {codec.Compress(), encrypt},
	} {
		t.Run(what, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				x := new(letter)
				x.waiting(t, s, c.from)
				before := x.withCodec(t, s, c.from)
				noError(t, before.Signal(within(t), "a", "unasked", "first", durable.SignalKey("k")))
				e := x.withCodec(t, s, c.to)
				noError(t, e.Signal(within(t), "a", "unasked", "first", durable.SignalKey("k")))
				if err := e.Signal(within(t), "a", "unasked", "other", durable.SignalKey("k")); !errors.Is(err, durable.ErrIDConflict) {
					t.Errorf("another signal: %v", err)
				}
				noError(t, e.Signal(within(t), "a", "send", "by air"))
				defer running(t, e)()
				run := read(x.define().Start(within(t), e, "hello", durable.ID("a")))(t)
				if out, err := run.Result(within(t)); out != "hello written, signed, by air" || err != nil || x.wrote.Load() != 1 || x.undone.Load() != 0 {
					t.Errorf("%q, %v: written %d times, undone %d", out, err, x.wrote.Load(), x.undone.Load())
				}
				info := read(e.Get(within(t), "a"))(t)
				if string(info.Input) != `"hello"` {
					t.Errorf("the input is %s", info.Input)
				}
				if exported := read(e.Export(within(t), "a", durable.DecodePayloads()))(t); !strings.Contains(string(exported), `"hello written"`) {
					t.Errorf("the export is %s", exported)
				}
			})
		})
	}
}

// A payload that needs a codec that the process lacks is unreadable everywhere, and the error names the codec. Nothing is taken for
// drift, and nothing is executed.
func TestAMissingCodecIsNamed(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(letter)
		x.waiting(t, s, bothCodecs(t, "a"))
		e := x.withCodec(t, s, codec.Compress())
		names := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, durable.ErrUnreadable) || errors.Is(err, durable.ErrIDConflict) || !strings.Contains(err.Error(), "codec.Encrypt") {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := x.define().Start(within(t), e, "hello", durable.ID("a"))
		names("Start", err)
		_, err = e.Export(within(t), "a", durable.DecodePayloads())
		names("Export", err)
		noError(t, e.Signal(within(t), "a", "send", "by air"))
		stop := running(t, e)
		info := awaitHeld(t, e, "codec.Encrypt")
		stop()
		if info.Diverged || encodedSize(t, info.Input) == 0 || x.wrote.Load() != 1 || x.sent.Load() != 0 {
			t.Errorf("diverged %v, the input is %s, written %d times, sent %d", info.Diverged, info.Input, x.wrote.Load(), x.sent.Load())
		}
		whole := x.withCodec(t, s, bothCodecs(t, "a"))
		defer running(t, whole)()
		tryNow(t, whole)
		awaitStatus(t, whole, "a", durable.StatusCompleted)
	})
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
