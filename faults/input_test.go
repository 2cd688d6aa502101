package faults

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// badInput is one thing that a step returns, or is called, that cannot be kept.
type badInput struct {
	name string              // of the case
	step string              // its name
	fn   func() (any, error) // what it returns
	want error               // nil: it is kept
}

// hundredMB is refused before it comes near a database, so once is enough: under the race
// detector it stops the whole process for seconds.
const hundredMB = 100 << 20

type ring struct{ Next *ring }

// badBytes are row 20's inputs, and what is too large.
func badBytes(large int) []badInput {
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	return []badInput{
		{name: "nul in output", fn: value("a\x00b")},
		{name: "invalid utf-8 in output", fn: value("a\xffb"), want: durable.ErrNotEncodable},
		{name: "nul in error", fn: func() (any, error) { return nil, errors.New("bad \x00 text") }, want: errStep},
		{name: "invalid utf-8 in error", fn: func() (any, error) { return nil, errors.New("bad \xff\xfe text") }, want: errStep},
		{name: "huge error", fn: func() (any, error) { return nil, errors.New(strings.Repeat("é", 1<<20)) }, want: errStep},
		{name: "nul in name", step: "a\x00b", want: durable.ErrInvalidName},
		{name: "invalid utf-8 in name", step: "a\xffb", want: durable.ErrInvalidName},
		{name: "too large", fn: func() (any, error) { return strings.Repeat("x", large), nil }, want: durable.ErrPayloadTooLarge},
		{name: "deep", fn: func() (v any, err error) { return v, json.Unmarshal([]byte(deep), &v) }},
	}
}

// value is a step function that returns v.
func value(v any) func() (any, error) { return func() (any, error) { return v, nil } }

// unencodable are row 21's.
func unencodable() []badInput {
	cycle := &ring{}
	cycle.Next = cycle
	return []badInput{
		{name: "NaN", fn: value(math.NaN()), want: durable.ErrNotEncodable},
		{name: "Inf", fn: value(math.Inf(1)), want: durable.ErrNotEncodable},
		{name: "chan", fn: value(make(chan int)), want: durable.ErrNotEncodable},
		{name: "func", fn: value(func() {}), want: durable.ErrNotEncodable},
		{name: "cycle", fn: value(cycle), want: durable.ErrNotEncodable},
	}
}

// errStep stands for any *durable.StepError.
var errStep = errors.New("a step's own failure")

// Row 20: a value, name, ID or error text that cannot be kept fails its own run for good,
// while neighbours in the same batches commit.
func TestRow20_BadBytesBesideNeighbours(t *testing.T) {
	onBothAlone(t, func(t *testing.T, db database) {
		large := hundredMB
		if db.Kind != "sqlite" {
			large = 5 << 20
		}
		besideNeighbours(t, db, badBytes(large))
	})
}

// Row 21: an output that cannot be encoded fails its run for good, after the effect and
// without a loop.
func TestRow21_OutputThatCannotBeEncoded(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) { besideNeighbours(t, db, unencodable()) })
}

// besideNeighbours has each input made by a run of its own, which may be retried once,
// among runs that have nothing wrong with them.
func besideNeighbours(t *testing.T, db database, inputs []badInput) {
	t.Helper()
	l := newLedger(t)
	w := durable.Define("bad", func(c *durable.Ctx, i int) (string, error) {
		in := inputs[i]
		step := in.step
		if step == "" {
			step = "bad"
		}
		_, err := c.Step(step, func(ctx context.Context) (any, error) {
			l.did(ctx, c.ID(), "bad")
			if in.fn == nil {
				return nil, nil
			}
			return in.fn()
		}, durable.Retry(durable.Fixed(time.Millisecond, 2)))
		return "kept", err
	})
	neighbour := calm(l)
	var mu sync.Mutex
	shared := 0 // batches that a bad run's write shared with others
	f := &faulty{Store: db.openIn(t), beforeCommit: func(_ int64, b *store.Batch) error {
		mu.Lock()
		defer mu.Unlock()
		if b.Len() > 1 {
			shared++
		}
		return nil
	}}
	e := engineOn(t, f, durable.Config{}, w, neighbour)
	runEngine(t, e)
	for _, id := range []string{"a\x00b", "a\xffb", "\n"} {
		_, err := w.Start(bounded(t), e, 0, durable.ID(id))
		mustFail(t, err, durable.ErrInvalidName)
	}
	const neighbours = 60
	var items []durable.StartItem[int]
	for i := range neighbours {
		items = append(items, durable.StartItem[int]{ID: fmt.Sprint("n", i), Input: i})
	}
	for i, in := range inputs {
		start(t, e, w, i, durable.ID(in.name))
	}
	handles, err := neighbour.StartMany(bounded(t), e, items)
	if err != nil {
		t.Fatal(err)
	}
	for i, run := range handles {
		if v, err := run.Result(bounded(t)); err != nil || v != 4*i {
			t.Errorf("neighbour %d: %d, %v", i, v, err)
		}
	}
	refused, kept := 0, 0
	for _, in := range inputs {
		_, err := result(t, e, w, in.name)
		ran := len(l.of(t, in.name, "bad"))
		var failed *durable.RunError
		switch {
		case in.want == nil:
			kept++
			if err != nil || ran != 1 {
				t.Errorf("%s: ran %d times: %.300v", in.name, ran, err)
			}
			continue
		case in.want == errStep:
			if !errors.As(err, &failed) || failed.Step != "bad" || ran != 2 {
				t.Errorf("%s: ran %d times: %.300v", in.name, ran, err)
			}
		default:
			if !errors.Is(err, in.want) || in.fn != nil && ran != 1 || in.fn == nil && ran != 0 {
				t.Errorf("%s: ran %d times: %.300v", in.name, ran, err)
			}
		}
		refused++
		if strings.ContainsAny(err.Error(), "\x00") || len(err.Error()) > 40<<10 {
			t.Errorf("%s: the error holds %d bytes", in.name, len(err.Error()))
		}
	}
	if shared == 0 {
		t.Error("no batch was shared: the fault did not occur")
	}
	t.Logf("bad=%d refused=%d kept=%d neighbours=%d shared_batches=%d", len(inputs), refused, kept, neighbours, shared)
}

// A store that refuses one value of a batch, as a database does that knows better than
// the encoder: the batch is halved until only that value is refused.
func TestRow20_OneRefusedRowInABatch(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l := newLedger(t)
		var mu sync.Mutex
		refusals, largest := 0, 0
		f := &faulty{Store: db.openIn(t), beforeCommit: func(_ int64, b *store.Batch) error {
			for _, w := range b.Steps {
				if bytes.Contains(w.Step.Output, []byte("poison")) {
					mu.Lock()
					defer mu.Unlock()
					refusals++
					largest = max(largest, b.Len())
					return fmt.Errorf("test: %w", store.ErrBadData)
				}
			}
			return nil
		}}
		gate := make(chan struct{})
		w := durable.Define("gated", func(c *durable.Ctx, v string) (string, error) {
			return c.Step("v", func(ctx context.Context) (string, error) {
				l.did(ctx, c.ID(), "v")
				<-gate
				return v, nil
			})
		})
		e := engineOn(t, f, durable.Config{}, w)
		runEngine(t, e)
		var items []durable.StartItem[string]
		for i := range 40 {
			items = append(items, durable.StartItem[string]{ID: fmt.Sprint("r", i), Input: "fine"})
		}
		items[17].Input = "poison"
		handles, err := w.StartMany(bounded(t), e, items)
		if err != nil {
			t.Fatal(err)
		}
		await(t, "all steps to be in their functions", func() bool { return len(l.read(t)) == 40 })
		close(gate)
		for i, run := range handles {
			_, err := run.Result(bounded(t))
			if i == 17 {
				mustFail(t, err, durable.ErrRefused)
			} else if err != nil {
				t.Errorf("neighbour %d: %v", i, err)
			}
		}
		if n := len(l.read(t)); n != 40 {
			t.Errorf("%d executions of 40 steps", n)
		}
		if largest < 2 {
			t.Error("the poison was never in a batch with others")
		}
		t.Logf("refusals=%d largest_batch_refused=%d neighbours_kept=39", refusals, largest)
	})
}

// precious is what row 22 must keep exactly.
type precious struct {
	Big      int64
	Unsigned uint64
	Any      any
	Map      map[string]any
	NilSlice []int
	Empty    []int
	NilMap   map[string]int
	EmptyMap map[string]int
	At       time.Time
	Took     time.Duration
	Bytes    []byte
	Text     string
	Pointer  *int
}

// Row 22: values come back as they were, on the first run, on a replay and from the
// result.
func TestRow22_ValuesAreKeptExactly(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		const big = int64(1)<<53 + 1
		value := precious{
			Big: math.MaxInt64, Unsigned: math.MaxUint64, Any: big,
			Map:   map[string]any{"i": big, "u": uint64(math.MaxUint64), "f": 1.5, "list": []any{big, "x", nil}},
			Empty: []int{}, EmptyMap: map[string]int{},
			At:   time.Date(2026, 2, 3, 4, 5, 6, 123456789, time.UTC),
			Took: 90*time.Minute + 7, Bytes: []byte{0, 1, 255}, Text: "\x00<&>\u2028😀",
		}
		var mu sync.Mutex
		var seen []precious
		first := true
		hold := make(chan struct{})
		w := durable.Define("exact", func(c *durable.Ctx, in precious) (precious, error) {
			v, err := c.Step("v", func(context.Context) (precious, error) { return value, nil })
			if err != nil {
				return v, err
			}
			mu.Lock()
			seen = append(seen, in, v)
			leave := first
			first = false
			mu.Unlock()
			if leave {
				close(hold)
				<-c.Done() // the first execution leaves, the second replays
				return v, context.Cause(c)
			}
			return v, nil
		})
		s := db.openIn(t)
		e := engineOn(t, s, durable.Config{}, w)
		stop := runEngine(t, e)
		start(t, e, w, value, durable.ID("r"))
		<-hold
		stop()
		e = engineOn(t, s, durable.Config{}, w)
		out, err := w.Call(bounded(t), e, value, durable.ID("r"))
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, out)
		if len(seen) != 5 {
			t.Fatalf("the run was executed %d times", len(seen)/2)
		}
		for i, got := range seen {
			if !got.At.Equal(value.At) {
				t.Errorf("%d: time %v", i, got.At)
			}
			got.At = value.At
			if !reflect.DeepEqual(got, value) {
				t.Errorf("%d: %+v, want %+v", i, got, value)
			}
		}
		t.Logf("copies_compared=%d replays=1 int64_in_any=%v", len(seen), seen[3].Any)
	})
}
