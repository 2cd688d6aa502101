package engine

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Probe is a test's hold on an engine; see package durabletest, the only one that has any.
// It comes with the store: an engine on a Probed one is probed.
type Probe interface {
	// Attach is called once, by New.
	Attach(e *Engine)
	// Clock is asked for once, by New. Nil: the database's time.
	Clock() Clock
	// Called is told of every durable call that an execution makes, also of those that history
	// answers. It must not block or call back.
	Called(c Call)
	// Attempt makes one attempt by calling next, or does something else instead.
	Attempt(ctx context.Context, c Call, next func() (Output, *Failure)) (Output, *Failure)
	// Sealing returns the output that an attempt which commits its own checkpoint is to record, given
	// the one that its function made.
	Sealing(c Call, output []byte) []byte
}

// Probed is a store with a probe. Beneath is the store that it stands before: what
// Engine.Store answers.
type Probed interface {
	store.Store
	Probe() Probe
	Beneath() store.Store
}

// Clock is a time that stands for the database's. Steps that are executed, their attempts'
// timeouts and the engine's own pauses take the time that they take.
type Clock interface {
	// Now is in UTC and in whole microseconds, and never goes back.
	Now() time.Time
	// At calls f, which does not block, once the time has come. Stop reports whether f was
	// kept from being called.
	At(due time.Time, f func()) Timer
}

// Timer is what *time.Timer is for time.AfterFunc.
type Timer interface{ Stop() bool }

// Call is one durable call of an execution.
type Call struct {
	Run      uuid.UUID
	Parent   uuid.NullUUID
	RunName  string
	Workflow string
	Epoch    store.Epoch
	Name     string // with its scope; see Shown
	Kind     store.Kind
	Attempt  int32 // zero in Probe.Called
	Recorded bool  // history holds its outcome
}

// Encode and FailureOf are set by the root package: how it records a value, and an error.
var (
	Encode    func(v any) ([]byte, error)
	FailureOf func(err error) *Failure
)

// probed takes the store's probe, if it has one.
func (e *Engine) probed(s store.Store) {
	p, ok := s.(Probed)
	if !ok {
		return
	}
	e.probe, e.beneath, e.clock.test = p.Probe(), p.Beneath(), p.Probe().Clock()
	e.probe.Attach(e)
}

// seen tells the probe of a call. recorded is its row in history, or nil.
func (r *run) seen(name string, kind store.Kind, recorded *store.Step) {
	if p := r.e.probe; p != nil {
		p.Called(r.sight(name, kind, recorded != nil && recorded.Status.Terminal()))
	}
}

func (r *run) sight(name string, kind store.Kind, recorded bool) Call {
	return Call{
		Run: r.row.ID, Parent: r.row.Parent, RunName: r.row.Name, Workflow: r.row.Workflow, Epoch: r.row.Epoch,
		Name: name, Kind: kind, Recorded: recorded,
	}
}

// perform does the attempt, by way of the probe if there is one.
func (t *task) perform(ctx *attemptContext) (got tried) {
	if t.r.e.probe == nil {
		return t.act(ctx)
	}
	return t.performProbed(ctx)
}

// sealing is the output to record, by way of the probe if there is one, and whether that is the
// function's own.
func (t *task) sealing(output []byte) (record []byte, own bool) {
	if t.r.e.probe == nil {
		return output, true
	}
	record = t.r.e.probe.Sealing(t.r.sight(t.name, t.spec.Kind, false), output)
	return record, bytes.Equal(record, output)
}

// probeChoice returns which branches decide a choice.
func (t *task) probeChoice(spec *ChoiceSpec) ([]int, error) {
	if t.r.e.probe == nil {
		return spec.Won, nil
	}
	c := t.r.sight(t.name, store.KindChoice, false)
	c.Attempt = t.attempt
	out, failure := t.r.e.probe.Attempt(t.s.work, c, func() (Output, *Failure) {
		made := spec.decided(spec.Won)
		record, err := json.Marshal(&made)
		if err != nil {
			return Output{}, &Failure{Message: err.Error()}
		}
		return Output{Bytes: record}, nil
	})
	if failure != nil {
		return nil, t.interruption()
	}
	first, err := decodeChoice(out.Bytes)
	return slices.Concat(first.Won, first.Failed), err
}

func (t *task) performProbed(ctx *attemptContext) (got tried) {
	c := t.r.sight(t.name, t.spec.Kind, false)
	c.Attempt = t.attempt
	got.out, got.failure = t.r.e.probe.Attempt(ctx, c, func() (Output, *Failure) {
		got = t.act(ctx)
		return got.out, got.failure
	})
	return got
}
