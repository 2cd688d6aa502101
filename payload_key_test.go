package durable_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/codec"
	"github.com/seed8ec063be/durable/durabletest"
	"github.com/seed8ec063be/durable/sqlite"
)

// letter is a workflow with a recorded step, a signal and a compensation.
type letter struct{ wrote, undone, sent atomic.Int32 }

func (x *letter) define() *durable.Workflow[string, string] {
	return durable.Define("letter", func(c *durable.Ctx, in string) (string, error) {
		if err := c.Compensate("undo", func(context.Context) error { x.undone.Add(1); return nil }); err != nil {
			return "", err
		}
		first, err := c.Step("write", func(context.Context) (string, error) { x.wrote.Add(1); return in + " written", nil })
		if err != nil {
			return "", err
		}
		second, err := c.Step("sign", func(context.Context) (string, error) { return "signed", nil })
		if err != nil {
			return "", err
		}
		word, err := c.Receive[string]("send")
		if err != nil {
			return "", err
		}
		x.sent.Add(1)
		return first + ", " + second + ", " + word, nil
	})
}

// withCodec returns an engine that executes the workflow with a codec.
func (x *letter) withCodec(t *testing.T, s durable.Store, c durable.Codec) *durable.Engine {
	return engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{x.define()}, Codec: c, ParkAfter: time.Millisecond})
}

// waiting starts the run "a" up to its wait, and stops the process.
func (x *letter) waiting(t *testing.T, s durable.Store, c durable.Codec) {
	t.Helper()
	e := x.withCodec(t, s, c)
	defer running(t, e)()
	if _, err := x.define().Start(within(t), e, "hello", durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, e, "a", durable.StatusWaiting)
}

// awaitHeld waits until the run "a" was released for a reason that contains the text.
func awaitHeld(t *testing.T, e *durable.Engine, text string) *durable.RunInfo {
	t.Helper()
	var info *durable.RunInfo
	waitFor(t, func() bool {
		info = read(e.Get(within(t), "a"))(t)
		return info.Status == durable.StatusPending && info.Reason != ""
	})
	if !strings.Contains(info.Reason, text) {
		t.Errorf("the run is held because %q, want %q", info.Reason, text)
	}
	if held := read(e.List(within(t), durable.Filter{Held: true}, durable.Page{}))(t).Runs; info.Crashes > 0 && (len(held) != 1 || held[0].ID != "a" || held[0].Reason != info.Reason) {
		t.Errorf("the held runs are %+v, the run is %+v", held, info)
	}
	return info
}

// tryNow has a held run claimed before its time.
func tryNow(t *testing.T, e *durable.Engine) {
	t.Helper()
	must(t)(e.Pause(within(t), "a"))
	must(t)(e.Resume(within(t), "a"))
}

// A process that lacks the key of a run executes and compensates nothing of it, and says which key it needs. A process that has the
// key continues the run. That the run was held is no crash.
func TestARunWaitsForItsKey(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(letter)
		x.waiting(t, s, bothCodecs(t, "old"))
		other := engineAsGiven(t, s, durable.Config{
			Workflows: []durable.Definition{x.define()}, Codec: bothCodecs(t, "new"), ParkAfter: time.Millisecond, MaxCrashes: 1, FailAtMaxCrashes: true,
		})
		stop := running(t, other)
		if err := other.Signal(within(t), "a", "send", "by air"); err != nil { // encrypted with the new key
			t.Fatal(err)
		}
		info := awaitHeld(t, other, `"old"`)
		if info.Crashes != 0 || info.WakeAt.IsZero() || string(info.Input) != `{"encoded":`+fmt.Sprint(encodedSize(t, info.Input))+`}` {
			t.Errorf("the held run has %d crashes, is due at %v, and has the input %s", info.Crashes, info.WakeAt, info.Input)
		}
		tryNow(t, other)
		awaitHeld(t, other, `"old"`)
		if _, err := x.define().Start(within(t), other, "hello", durable.ID("a")); !errors.Is(err, durable.ErrUnreadable) {
			t.Errorf("a start with the same ID: %v", err)
		}
		if _, err := other.Export(within(t), "a"); !errors.Is(err, durable.ErrUnreadable) {
			t.Errorf("an export: %v", err)
		}
		history := read(other.History(within(t), "a"))(t)
		if len(history) < 2 || encodedSize(t, history[0].Output) == 0 {
			t.Errorf("the history is %+v", history)
		}
		report := read(other.Preflight(within(t), durable.Filter{}))(t)
		if len(report.Runs) != 1 || !report.Runs[0].Diverged || !strings.Contains(report.Runs[0].Reason, `"old"`) {
			t.Errorf("the preflight says %+v", report.Runs)
		}
		stop()
		both := x.withCodec(t, s, bothCodecs(t, "third", "new", "old"))
		defer running(t, both)()
		tryNow(t, both)
		awaitStatus(t, both, "a", durable.StatusCompleted)
		if out := read(read(x.define().Handle(within(t), both, "a"))(t).Result(within(t)))(t); out != "hello written, signed, by air" {
			t.Errorf("the result is %q", out)
		}
		if x.wrote.Load() != 1 || x.undone.Load() != 0 || x.sent.Load() != 1 {
			t.Errorf("written %d times, undone %d, sent %d", x.wrote.Load(), x.undone.Load(), x.sent.Load())
		}
		_, _, err := read(x.define().Handle(within(t), other, "a"))(t).TryResult(within(t))
		if unknown, ok := errors.AsType[*durable.UnknownEncryptionKeyError](err); !ok || unknown.KeyID != "third" {
			t.Errorf("the result without the key: %v", err)
		}
		_, _, err = read(x.define().Handle(within(t), engineAsGiven(t, s, durable.Config{}), "a"))(t).TryResult(within(t))
		if !errors.Is(err, durable.ErrUnreadable) {
			t.Errorf("the result without a codec: %v", err)
		}
	})
}

// encodedSize returns the number in the JSON that stands for an encoded payload, or zero.
func encodedSize(t *testing.T, b []byte) int {
	t.Helper()
	var shown struct{ Encoded int }
	if err := json.Unmarshal(b, &shown, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Errorf("%s: %v", b, err)
	}
	return shown.Encoded
}

// What was written without a codec stays readable with one. Without the codec, what was written with it holds the run.
func TestACodecIsAddedToADatabaseInUse(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(letter)
		plain := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{x.define()}, ParkAfter: time.Millisecond})
		stop := running(t, plain)
		if _, err := x.define().Start(within(t), plain, "hello", durable.ID("a")); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, plain, "a", durable.StatusWaiting)
		stop()
		with := x.withCodec(t, s, bothCodecs(t, "a"))
		if run, err := x.define().Start(within(t), with, "hello", durable.ID("a")); err != nil || run.ID() != "a" {
			t.Errorf("the same start with a codec: %v", err)
		}
		if err := with.Signal(within(t), "a", "send", "by sea"); err != nil {
			t.Fatal(err)
		}
		none := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{x.define()}, ParkAfter: time.Millisecond})
		stop = running(t, none)
		awaitHeld(t, none, "Config.Codec")
		stop()
		defer running(t, with)()
		tryNow(t, with)
		awaitStatus(t, with, "a", durable.StatusCompleted)
		if out := read(read(x.define().Handle(within(t), with, "a"))(t).Result(within(t)))(t); out != "hello written, signed, by sea" || x.wrote.Load() != 1 {
			t.Errorf("the result is %q, written %d times", out, x.wrote.Load())
		}
	})
}

// Payloads that somebody exchanges in the database do not decode, and hold the run.
func TestExchangedPayloadsAreRefused(t *testing.T) {
	onRawDatabases(t, func(t *testing.T, d *rawDatabase) {
		x := new(letter)
		x.waiting(t, d.Store, bothCodecs(t, "a"))
		n, err := d.exec(within(t), fmt.Sprintf(
			"UPDATE %[1]sstep SET output = (SELECT s.output FROM %[1]sstep AS s WHERE s.name = 'write') WHERE name = 'sign'", d.prefix))
		if err != nil || n != 1 {
			t.Fatal(n, err)
		}
		e := x.withCodec(t, d.Store, bothCodecs(t, "a"))
		defer running(t, e)()
		if err := e.Signal(within(t), "a", "send", "by air"); err != nil {
			t.Fatal(err)
		}
		awaitHeld(t, e, `the record of "sign"`)
		if x.sent.Load() != 0 || x.undone.Load() != 0 {
			t.Error("the run was executed")
		}
	})
}

// The same ID and the same key of a signal are found with the same value, and conflict with another one, although equal values have
// other bytes each time.
func TestTheSameStartIsFoundWithACodec(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(letter)
		e := x.withCodec(t, s, bothCodecs(t, "b", "a"))
		for range 2 {
			if _, err := x.define().Start(within(t), e, "hello", durable.ID("a")); err != nil {
				t.Fatal(err)
			}
			if err := e.Signal(within(t), "a", "send", "once", durable.SignalKey("k")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := x.define().Start(within(t), e, "other", durable.ID("a")); !errors.Is(err, durable.ErrIDConflict) {
			t.Errorf("another input: %v", err)
		}
		if err := e.Signal(within(t), "a", "send", "twice", durable.SignalKey("k")); !errors.Is(err, durable.ErrIDConflict) {
			t.Errorf("another signal: %v", err)
		}
	})
}

// An export is encoded unless it is asked for in clear, and can be decoded later.
func TestExportsAreEncoded(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(letter)
		x.waiting(t, s, bothCodecs(t, "a"))
		e := x.withCodec(t, s, bothCodecs(t, "a"))
		encoded := read(e.Export(within(t), "a"))(t)
		if strings.Contains(string(encoded), "hello") || strings.Contains(string(encoded), "signed") {
			t.Errorf("the export is readable: %s", encoded)
		}
		plain := read(e.Export(within(t), "a", durable.DecodePayloads()))(t)
		var got, want durable.Exported
		if err := errors.Join(json.Unmarshal(encoded, &got), json.Unmarshal(plain, &want)); err != nil {
			t.Fatal(err)
		}
		if err := x.withCodec(t, s, bothCodecs(t, "b")).DecodeExport(&got); !errors.Is(err, durable.ErrUnreadable) {
			t.Errorf("decoded without the key: %v", err)
		}
		if err := e.DecodeExport(&got); err != nil {
			t.Fatal(err)
		}
		if got, want := string(read(json.Marshal(got))(t)), string(read(json.Marshal(want))(t)); got != want || !strings.Contains(got, "hello") {
			t.Errorf("decoded: %s\nin clear: %s", got, want)
		}
		if v := durabletest.Replay(t, x.define(), plain); v.Diverged {
			t.Errorf("the replay diverges: %+v", v)
		}
	})
}

// brokenCodec cannot encode a payload that contains the text. It panics instead of an error if it is to.
type brokenCodec struct {
	text   string
	panics bool
}

func (c brokenCodec) Encode(_ durable.PayloadSlot, b []byte) ([]byte, error) {
	if strings.Contains(string(b), c.text) {
		if c.panics {
			panic("the key server is away")
		}
		return nil, errors.New("the key server is away")
	}
	return b, nil
}

func (c brokenCodec) Decode(_ durable.PayloadSlot, b []byte) ([]byte, error) { return b, nil }

// What a codec cannot encode is not written: a caller gets ErrRejected, and a run is held. A panic is no better and no worse than an error.
func TestACodecThatFails(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		for _, panics := range []bool{false, true} {
			x := new(letter)
			e := engineAsGiven(t, s, durable.Config{
				Workflows: []durable.Definition{x.define()}, Codec: brokenCodec{"written", panics}, ParkAfter: time.Millisecond, Patience: 50 * time.Millisecond,
			})
			stop := running(t, e)
			if _, err := x.define().Start(within(t), e, "written", durable.ID("refused")); !errors.Is(err, durable.ErrRejected) || !strings.Contains(err.Error(), "key server") {
				t.Errorf("a start: %v", err)
			}
			if _, err := x.define().Start(within(t), e, "hello", durable.ID("a")); err != nil {
				t.Fatal(err)
			}
			awaitHeld(t, e, "the key server is away")
			stop()
			must(t)(e.Terminate(within(t), "a"))
			if _, err := e.Delete(within(t), "a"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// panickingDecoder panics when it decodes.
type panickingDecoder struct{ brokenCodec }

func (panickingDecoder) Decode(durable.PayloadSlot, []byte) ([]byte, error) {
	panic("not this version")
}

// A codec that panics while it decodes holds the run, and harms no other one.
func TestACodecThatPanicsInDecode(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(letter)
		x.waiting(t, s, brokenCodec{text: "nothing of the kind"})
		e := x.withCodec(t, s, panickingDecoder{brokenCodec{text: "nothing of the kind"}})
		running(t, e)
		if err := e.Signal(within(t), "a", "send", "by air"); err != nil {
			t.Fatal(err)
		}
		awaitHeld(t, e, "not this version")
	})
}

// A process that lacks the key of a run cannot copy it, or repair it again, and says so at once.
func TestRepairsWithoutTheKey(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(letter)
		x.waiting(t, s, bothCodecs(t, "old"))
		if _, err := x.withCodec(t, s, bothCodecs(t, "old")).Fork(within(t), "a", durable.From("sign")); err != nil {
			t.Fatal(err)
		}
		blind := x.withCodec(t, s, bothCodecs(t, "new"))
		for _, verb := range []func() (*durable.Repaired, error){
			func() (*durable.Repaired, error) {
				return blind.Fork(within(t), "a", durable.FromEnd(), durable.NewID("b"))
			},
			func() (*durable.Repaired, error) { return blind.Override(within(t), "a", "write", "by hand") },
		} {
			_, err := verb()
			missing, ok := errors.AsType[*durable.UnknownEncryptionKeyError](err)
			if !ok || missing.KeyID != "old" || !errors.Is(err, durable.ErrUnreadable) || errors.Is(err, durable.ErrRejected) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		}
	})
}

// New refuses a codec that cannot work.
func TestAChainWithoutACodec(t *testing.T) {
	s := read(sqlite.Open(filepath.Join(t.TempDir(), "x.db")))(t)
	defer s.Close()
	for _, c := range []durable.Codec{codec.Chain(nil), codec.Chain(codec.Compress(), codec.Chain(codec.Compress(), nil))} {
		if _, err := durable.New(s, durable.Config{Codec: c}); !errors.Is(err, durable.ErrInvalidConfig) || !strings.Contains(err.Error(), "nil") {
			t.Errorf("the chain %v: %v", c, err)
		}
	}
}

// A process without the codec starts no run of a schedule whose input is encoded, and says why. It would get the size of the input instead.
func TestASchedulesInputNeedsTheCodec(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		echo := durable.Define("echo", func(_ *durable.Ctx, in map[string]int) (map[string]int, error) { return in, nil })
		engine := func(c durable.Codec) *durable.Engine {
			return engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{echo}, Codec: c})
		}
		with, none, other := engine(bothCodecs(t, "a")), engine(nil), engine(bothCodecs(t, "b"))
		if err := with.SetSchedule(within(t), echo.Schedule(map[string]int{"cents": 4711}, durable.Schedule{Name: "tick", Every: time.Second})); err != nil {
			t.Fatal(err)
		}
		if id, err := none.TriggerSchedule(within(t), "tick"); !errors.Is(err, durable.ErrUnreadable) {
			t.Errorf("triggered run %q without the codec: %v", id, err)
		}
		id, err := other.TriggerSchedule(within(t), "tick")
		if unknown, ok := errors.AsType[*durable.UnknownEncryptionKeyError](err); !ok || unknown.KeyID != "a" || !errors.Is(err, durable.ErrUnreadable) {
			t.Errorf("triggered run %q without the key: %v", id, err)
		}
		stop := running(t, none)
		waitFor(t, func() bool { return strings.Contains(read(none.Schedules(within(t)))(t)[0].Problem, "Config.Codec") })
		stop()
		if fires := read(none.ScheduleFires(within(t), "tick", durable.Page{Limit: 10}))(t); len(fires) != 0 {
			t.Errorf("started without the codec: %+v", fires)
		}
		running(t, with)
		id = read(with.TriggerSchedule(within(t), "tick"))(t)
		if out, err := read(echo.Handle(within(t), with, id))(t).Result(within(t)); out["cents"] != 4711 || err != nil {
			t.Errorf("the result is %v, %v", out, err)
		}
	})
}
