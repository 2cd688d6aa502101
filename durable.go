package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// Store is a database that durable works in: what sqlite.Open, postgres.Open and
// postgres.New answer. The package that made it owns its connections; close it there
// after Run has returned.
type Store = store.Store

// MaxName is the longest name or ID, in bytes.
const MaxName = engine.MaxName

// Config says what an Engine does. The zero value is a client: it starts runs and
// looks at them, and executes none.
type Config struct {
	// Workflows lists what this process executes. It never takes a run of another.
	Workflows []Definition
	// Name is the worker's in the registry. Empty: host and process ID.
	Name string
	// Version is the program's, kept with the runs that it starts; informative.
	Version string
	// Concurrency is how many runs are executed at once. Zero: 256. While more than that are due, as
	// many as end in 30 ms wait in memory for the next free places; one that has waited for 0.5 s is
	// given back.
	Concurrency int
	// StepConcurrency is how many functions of steps, Tx steps and compensations this process executes at once,
	// over all runs. The others wait in the order in which they came, until a cancel, a pause or a shutdown; the wait
	// counts for no timeout of the step. A step whose function waits for the result of a run (Run.Result, Call) with its
	// own context lends its place meanwhile. A function that ignores its timeout no longer counts. Zero: no bound.
	StepConcurrency int
	// Lease is how long the runs of a worker stay its own when nothing is heard of it.
	// Each lease is renewed three times in this. Zero: 10 s; at least 300 ms.
	Lease time.Duration
	// Poll is the longest pause between two looks for runs to take; hints and due times make
	// most of them shorter. Nobody is told of a start with a Delay of a minute or more: one that falls
	// due earlier than all the others is found by this look. Zero: 1 s.
	Poll time.Duration
	// Grace is how long running steps may go on when Run's context has ended. Zero:
	// 10 s. Negative: none.
	Grace time.Duration
	// ParkAfter: a run that has nothing to do for longer than this leaves memory until
	// then. Its function has twice this to return, or is reported with its stack. Zero: 5 s.
	ParkAfter time.Duration
	// MaxCrashes is how many times in a row the process of a run may die, or the run be held
	// (see ErrHeld), without a new checkpoint before the run is paused, with the reason. Zero: 5.
	MaxCrashes int
	// FailAtMaxCrashes has such a run fail instead, with [ErrCrashLoop]. Its compensations are not executed, since
	// that takes the workflow function, which may be what kills the process; its children are cancelled.
	// Set it alike in all processes: each run is judged by the worker that claims it.
	FailAtMaxCrashes bool
	// ClaimLimit is how many runs one look for due runs takes at most. Fewer are spread more evenly over
	// workers, and take more transactions. Zero: 256; at most 10000.
	ClaimLimit int
	// MaxPayload bounds each encoded input and output, in bytes. Zero: 4 MiB.
	MaxPayload int
	// Patience is how long a write is retried while the database is away, rejects it, or has
	// it wait for another transaction. Then its caller gets a WriteError with ErrUnavailable,
	// ErrRejected or ErrLocked, and a run leaves memory (see ErrHeld). Only runs wait for a missing
	// privilege; other callers get ErrPermission at once. Zero: one minute.
	Patience time.Duration

	// Logger gets the engine's lines: failures at Warn, cancels and a worker's life at Info. Nil: none
	// are written. An idle engine writes nothing at Info.
	Logger *slog.Logger
	// TracerProvider and MeterProvider: nil means OpenTelemetry's global ones.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// MetricStepNames is how many step names of each workflow are told apart in metrics, by the
	// attribute durable.step.name; the steps that come after those are counted as _OTHER. Items of a Map
	// are counted under the Map's name. Zero: 100. Negative: the attribute is left out.
	MetricStepNames int
}

// mostPayload is the most that Config.MaxPayload can be.
const mostPayload = 512 << 20

// markAfter is how long an attempt may last before it leaves a started marker. Up to
// here a step costs one row; see docs/decisions.md.
const markAfter = 20 * time.Millisecond

// defaults fills in what is zero, and refuses what cannot work.
func (c *Config) defaults() error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	c.Name = or(c.Name, fmt.Sprintf("%s:%d", host, os.Getpid()))
	c.Concurrency = or(c.Concurrency, 256)
	c.Lease = or(c.Lease, 10*time.Second)
	c.Poll = or(c.Poll, time.Second)
	c.Grace = max(0, or(c.Grace, 10*time.Second))
	c.ParkAfter = or(c.ParkAfter, 5*time.Second)
	c.MaxCrashes = or(c.MaxCrashes, 5)
	c.MaxPayload = or(c.MaxPayload, 4<<20)
	c.MetricStepNames = or(c.MetricStepNames, telemetry.MetricStepNames)
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalidConfig}, args...)...))
		}
	}
	refuse(c.Concurrency < 0, "Concurrency is %d: it must be positive", c.Concurrency)
	refuse(c.StepConcurrency < 0, "StepConcurrency is %d: it must be positive, or zero for no bound", c.StepConcurrency)
	refuse(c.Lease < 300*time.Millisecond, "Lease is %v: it must be at least 300ms, or renewals come too late", c.Lease)
	refuse(c.Poll < 0, "Poll is %v: it must be positive", c.Poll)
	refuse(c.ParkAfter < 0, "ParkAfter is %v: it must be positive", c.ParkAfter)
	refuse(c.MaxCrashes < 0 || c.MaxCrashes > 1000, "MaxCrashes is %d: it must be from 1 to 1000", c.MaxCrashes)
	refuse(c.ClaimLimit < 0 || c.ClaimLimit > 10_000, "ClaimLimit is %d: it must be from 1 to 10000", c.ClaimLimit)
	refuse(c.MaxPayload < 0 || c.MaxPayload > mostPayload, "MaxPayload is %d bytes: it must be positive and at most 512 MiB", c.MaxPayload)
	refuse(c.Patience < 0, "Patience is %v: it must be positive", c.Patience)
	errs = append(errs, engine.CheckText("worker's name", c.Name), engine.CheckText("program's version", c.Version))
	return errors.Join(errs...)
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Engine starts runs in one database, executes those of its workflows while Run is
// active, and looks at all of them. Make it with New. It is safe for concurrent use,
// and holds no goroutine or connection of its own while nothing is asked of it.
type Engine struct {
	cfg   Config
	inner *engine.Engine
}

// New makes an engine on a store. ErrInvalidConfig or ErrInvalidName says what of cfg
// cannot work. The database is not touched.
func New(s Store, cfg Config) (*Engine, error) {
	if s == nil {
		return nil, fmt.Errorf("%w: the store is nil: pass what sqlite.Open or postgres.Open answered", ErrInvalidConfig)
	}
	if err := cfg.defaults(); err != nil {
		return nil, err
	}
	defs := make([]*engine.Definition, 0, len(cfg.Workflows))
	names := make(map[string]bool, len(cfg.Workflows))
	for i, w := range cfg.Workflows {
		if w == nil {
			return nil, fmt.Errorf("%w: Config.Workflows[%d] is nil", ErrInvalidConfig, i)
		}
		d, err := w.definition(cfg.MaxPayload)
		if err != nil {
			return nil, err
		}
		if names[d.Name] {
			return nil, fmt.Errorf("%w: workflow %q is in Config.Workflows twice: names are keys", ErrInvalidConfig, d.Name)
		}
		names[d.Name] = true
		defs = append(defs, d)
	}
	tel, err := telemetry.New(cfg.Logger, cfg.TracerProvider, cfg.MeterProvider, cfg.MetricStepNames)
	if err != nil {
		return nil, err
	}
	return &Engine{cfg: cfg, inner: engine.New(s, engine.Config{
		Definitions: defs, Name: cfg.Name, Version: cfg.Version, Concurrency: cfg.Concurrency, StepsAtOnce: cfg.StepConcurrency,
		Lease: cfg.Lease, Poll: cfg.Poll, Grace: cfg.Grace, ParkAfter: cfg.ParkAfter, MaxCrashes: cfg.MaxCrashes, FailCrashed: cfg.FailAtMaxCrashes, ClaimLimit: cfg.ClaimLimit,
		MarkAfter: markAfter, Patience: cfg.Patience, Telemetry: tel,
	})}, nil
}

// Run executes runs of Config.Workflows until ctx ends: those started here, those
// started elsewhere, and those of processes that died. Then it drains: nothing new
// begins, running steps get Config.Grace to finish and are checkpointed, leases are
// given back at once, and it returns nil. An error says why it could not begin (ErrRunning,
// ErrSchema, or the database's), or that it had to stop since the database's file was moved away
// under it (ErrMoved).
func (e *Engine) Run(ctx context.Context) error { return e.inner.Run(ctx) }
