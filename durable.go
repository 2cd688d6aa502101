package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// Store is a database, as sqlite.Open, postgres.Open and postgres.New return it. A Store owns its connections: close the Store
// after [Engine.Run] has returned. Only this module may call the methods of a Store.
type Store = store.Store

// MaxNameBytes is the largest length, in bytes, of a name, an ID, a signal key, a tag key or a tag value.
const MaxNameBytes = 512

var _ = [1]struct{}{}[MaxNameBytes-naming.MaxName] // does not compile unless both are equal

// Config configures an [Engine]. With the zero Config, an engine is a client: the engine starts, controls and reads runs, and
// executes none. A field of Config that has its zero value gets the default that the comment of the field names.
type Config struct {
	// Workflows are the workflows that this process executes. The process claims runs of the workflows in Workflows only.
	Workflows []Definition
	// Queues are the queues from which this process claims runs. If Queues is empty, the process claims runs from all queues. A
	// run in a queue that no process serves waits, and every worker logs a warning.
	Queues []string
	// QueueSettings are the settings of queues that the code declares, by the name of the queue. A worker records QueueSettings
	// when [Engine.Run] begins, before the worker claims runs. If versions declare a queue differently, the declaration of the
	// newest Version applies, unless [Engine.SetQueue] has set the queue. [Engine.Queues] shows the declared settings and the
	// settings of SetQueue. The newest Version is the version whose first declaration of the queue is the most recent. The
	// settings of a queue that the code no longer declares stay until [Engine.DeleteQueue]. The settings bound a queue over all
	// workers, even if the field Queues does not name the queue.
	QueueSettings map[string]QueueSettings
	// Schedules are schedules that the code declares. A worker records its Schedules when [Engine.Run] begins. If versions
	// declare a schedule differently, the declaration of the newest Version applies, unless [Engine.SetSchedule] has set the
	// schedule. [Engine.Schedules] shows the declared schedule and the schedule of SetSchedule. The newest Version is the
	// version whose first declaration of the schedule is the most recent. When no worker of the newest Version is running any
	// more, the declaration of an older version applies again. A schedule that the code no longer declares stays until
	// [Engine.DeleteSchedule].
	Schedules []Schedule
	// Name is the name of this process in [Engine.Workers]. The default Name consists of the host name and the process ID.
	Name string
	// Version is the version of the program. A run records the version that started the run, and then the version that executed
	// the run last. The default Version is the time and the revision of the commit from which the program was built, such as
	// 20260102150405-0123456789ab. If the build had modified files, the default Version also has a hash of the executable. A
	// program that was built without the data of a commit, as by go test and go run, has a hash as its default Version; such a
	// Version is neither earlier nor later than others.
	//
	// A run does not go back to an earlier version while a worker of the recorded or a later version serves the run's workflow
	// and queue. A minute after the last worker of the recorded or a later version has stopped, workers of an earlier version
	// execute the run, and log that they execute it. Versions are ordered by the time at which their first worker started. The
	// record of a version is deleted after 90 days without a worker. See also [Pinned].
	Version string
	// Concurrency is the largest number of runs that this process executes at once. The default is 256. Under load the process
	// prefetches a few more runs, about as many as the process finishes in 30 ms.
	//
	// While a step of a run waits with its own context for the result of another run ([Run.Result], [Workflow.Call]), the run lends
	// its slot to a further run, and stays in memory. At most sixteen times Concurrency slots are lent at once; further runs
	// that wait in a step keep their slots. If runs that wait in a step keep all slots, no run continues until a wait ends, and
	// a warning is logged. A run that waits in [Ctx.Child] has no slot.
	Concurrency int
	// StepConcurrency is the largest number of functions of steps, Tx steps and compensations that this process executes at
	// once, over all runs. Zero means no bound.
	//
	// While the process executes as many of these functions as StepConcurrency allows, further functions wait, and begin in the
	// order in which they arrived. This wait does not count towards the timeouts of a step. A cancel, a pause or a shutdown
	// ends the wait. While a step waits with its own context for the result of a run ([Run.Result], [Workflow.Call]), the
	// function of the step does not count towards StepConcurrency. After the timeout of a function, the function no longer
	// counts towards StepConcurrency, even if it continues.
	StepConcurrency int
	// Lease is how long a run stays with a worker that no longer renews the lease. A worker renews its leases three times
	// during a Lease. If this process dies while it repairs a live run, for example in [Engine.Override], the run stays paused
	// for the duration of Lease. The default Lease is 10 s, the smallest 300 ms.
	Lease time.Duration
	// Poll is the longest time between two queries for due runs. Workers usually query earlier than Poll, because of a
	// notification or a due time. A start with a Delay of a minute or more sends no notification, so a worker may find such a
	// run only by polling. On PostgreSQL, a worker that receives many notifications polls less often: at intervals of at most
	// ten times Poll, and at most five times Poll for due runs. The default Poll is 1 s.
	Poll time.Duration
	// Grace is how long running steps may continue after the context of [Engine.Run] has ended. The default Grace is 10 s. A
	// negative Grace gives steps no time.
	Grace time.Duration
	// ParkAfter is the shortest wait for which a run is unloaded from memory. If the function of a run that is being unloaded
	// does not return within twice ParkAfter, the function's stack is logged. The default ParkAfter is 5 s.
	ParkAfter time.Duration
	// MaxCrashes is how many times in a row the process of a run may die, or the database reject what the run writes (see
	// [ErrHeld]), without a new checkpoint. A run that reaches MaxCrashes is paused, and the reason is recorded. The default
	// MaxCrashes is 5, the maximum 1000.
	MaxCrashes int
	// FailAtMaxCrashes makes a run that reaches MaxCrashes fail with [ErrCrashLoop] instead of being paused. The compensations
	// of a run that fails with ErrCrashLoop are not executed, because the library would have to call the workflow function for
	// the compensations, and the function may be what kills the process. The children of the failed run are cancelled. Use the
	// same setting in all processes, because the setting of the worker that claims a run applies.
	FailAtMaxCrashes bool
	// ClaimLimit is the largest number of runs that one query claims. A smaller ClaimLimit spreads runs more evenly over
	// workers, and costs more transactions. Engines that share a store and claim the same runs also share their claim queries;
	// each engine executes as many of the claimed runs as it has slots. The default ClaimLimit is 256, the maximum 10000.
	ClaimLimit int
	// MaxPayload is the largest size of an encoded input, output or signal, in bytes. The default MaxPayload is 4 MiB, the
	// maximum 512 MiB.
	MaxPayload int
	// Patience is how long a write is retried while the database is not available, rejects it, or another transaction blocks
	// it. When Patience is over, the caller gets a [*WriteError] with [ErrUnavailable], [ErrRejected] or [ErrLocked], and a run
	// whose write failed is held (see [ErrHeld]). If a privilege is missing, only writes of runs are retried; other callers get
	// [ErrPermission] at once. The default Patience is one minute.
	Patience time.Duration
	// Retention sets how long ended runs, superseded generations and events are kept. The zero Retention keeps everything.
	Retention Retention

	// Codec encodes the inputs, outputs, signals and errors of runs before they reach the database, for example to encrypt them; see
	// package codec. Names, IDs, keys, tags, times and the types of errors are not encoded. Payloads that were written without a
	// codec can still be read. All processes that execute or read the runs need a codec that decodes the payloads; see
	// [ErrUnreadable]. Without a Codec, payloads are stored as JSON.
	Codec Codec

	// Logger receives the engine's log. The engine logs failures at Warn or Error, and cancels and the start and stop of the
	// worker at Info. An idle engine logs nothing at Info. If Logger is nil, the engine logs nothing.
	Logger *slog.Logger
	// TracerProvider receives the spans of the engine, and MeterProvider its metrics. The default providers are the global
	// providers of OpenTelemetry.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// MetricStepNames is the largest number of values of the attribute durable.step.name in metrics, for each workflow. The
	// metrics count further steps under the name _OTHER. Items of a Map are counted under the name of the Map. The default is
	// 100. With a negative MetricStepNames, metrics do not have the attribute.
	MetricStepNames int
}

// largestMaxPayload is the largest Config.MaxPayload.
const largestMaxPayload = 512 << 20

// startedMarkerDelay is the duration after which an attempt writes a started marker. A shorter step writes one row; see
// docs/decisions.md.
const startedMarkerDelay = 20 * time.Millisecond

// applyDefaults sets fields that are zero, and returns an error for invalid values.
func (c *Config) applyDefaults() error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	c.Name = firstNonZero(c.Name, fmt.Sprintf("%s:%d", host, os.Getpid()))
	c.Concurrency = firstNonZero(c.Concurrency, 256)
	c.Lease = firstNonZero(c.Lease, 10*time.Second)
	c.Poll = firstNonZero(c.Poll, time.Second)
	c.Grace = max(0, firstNonZero(c.Grace, 10*time.Second))
	c.ParkAfter = firstNonZero(c.ParkAfter, 5*time.Second)
	c.MaxCrashes = firstNonZero(c.MaxCrashes, 5)
	c.MaxPayload = firstNonZero(c.MaxPayload, 4<<20)
	c.MetricStepNames = firstNonZero(c.MetricStepNames, telemetry.MetricStepNames)
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
	refuse(c.MaxPayload < 0 || c.MaxPayload > largestMaxPayload, "MaxPayload is %d bytes: it must be positive and at most 512 MiB", c.MaxPayload)
	refuse(c.Patience < 0, "Patience is %v: it must be positive", c.Patience)
	for i, name := range c.Queues {
		if err := naming.Check("queue", name); err != nil {
			errs = append(errs, fmt.Errorf("Config.Queues[%d]: %w", i, err))
		}
	}
	if checker, ok := c.Codec.(payload.Checker); ok {
		err := checker.Check()
		refuse(err != nil, "Codec: %v", err)
	}
	errs = append(errs, c.Retention.check(), naming.CheckText("worker's name", c.Name), naming.CheckText("program's version", c.Version))
	return errors.Join(errs...)
}

func firstNonZero[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Engine starts, controls and reads the runs of one database, and executes the runs of its workflows while [Engine.Run] is
// active. Create an Engine with [New]. An Engine is safe for concurrent use. An Engine that is not used has no goroutines or
// connections of its own.
type Engine struct {
	cfg   Config
	inner *engine.Engine
}

// New returns an engine that works in the database s. New returns [ErrInvalidConfig] or [ErrInvalidName] if cfg is invalid. New
// does not access the database.
func New(s Store, cfg Config) (*Engine, error) {
	if isNil(s) || isZeroStore(s) {
		return nil, fmt.Errorf("%w: the store is nil or empty: pass what sqlite.Open or postgres.Open returned, once its error was checked", ErrInvalidConfig)
	}
	if err := registrationError(); err != nil {
		return nil, err
	}
	if err := cfg.applyDefaults(); err != nil {
		return nil, err
	}
	defs := make([]*engine.WorkflowDefinition, 0, len(cfg.Workflows))
	names := make(map[string]bool, len(cfg.Workflows))
	for i, w := range cfg.Workflows {
		if w == nil {
			return nil, fmt.Errorf("%w: Config.Workflows[%d] is nil", ErrInvalidConfig, i)
		}
		d, err := w.engineDefinition(cfg.MaxPayload)
		if err != nil {
			return nil, err
		}
		if names[d.Name] {
			return nil, fmt.Errorf("%w: workflow %q is in Config.Workflows twice: names are keys", ErrInvalidConfig, d.Name)
		}
		names[d.Name] = true
		defs = append(defs, d)
	}
	queues, err := declaredQueues(&cfg)
	if err != nil {
		return nil, err
	}
	schedules, err := declaredSchedules(&cfg)
	if err != nil {
		return nil, err
	}
	tel, err := telemetry.New(cfg.Logger, cfg.TracerProvider, cfg.MeterProvider, cfg.MetricStepNames)
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg}
	e.inner = engine.New(s, engine.Config{
		Definitions: defs, Queues: slices.Clone(cfg.Queues), Name: cfg.Name, Version: cfg.Version, Concurrency: cfg.Concurrency, StepConcurrency: cfg.StepConcurrency,
		Lease: cfg.Lease, Poll: cfg.Poll, Grace: cfg.Grace, ParkAfter: cfg.ParkAfter, MaxCrashes: cfg.MaxCrashes, FailAtMaxCrashes: cfg.FailAtMaxCrashes, ClaimLimit: cfg.ClaimLimit,
		StartedMarkerDelay: startedMarkerDelay, Patience: cfg.Patience, Schedules: schedules, DeclaredQueues: queues, Telemetry: tel,
		Retention: cfg.Retention.toEngine(e, names), Codec: cfg.Codec,
	})
	return e, nil
}

// Run executes runs of Config.Workflows until ctx ends: runs that were started here, runs that were started elsewhere, and runs
// of processes that died. When ctx has ended, Run drains: no further run begins, running steps get Config.Grace to finish and
// are recorded, leases are released, and Run returns nil. If a [Workflow.Call] is in progress when Run ends, the Call waits
// until another process has executed its run.
//
// Run returns [ErrRunning], [ErrSchema] or an error of the database if Run cannot begin. Run returns [ErrMoved] if the database
// file was moved, and [ErrClosed] if the store was closed.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.checkUsable(ctx); err != nil {
		return fmt.Errorf("run an engine: %w", err)
	}
	return e.inner.Run(ctx)
}
