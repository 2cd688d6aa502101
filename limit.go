package durable

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// Limit bounds how many steps execute at once, and how many begin in a period, over all workers and workflows of one database.
// Create a Limit with [NewLimit], usually as a package variable, and give the option [Limit.Permit] to the steps that the Limit
// bounds. Two Limits with the same name are the same limit. [Engine.SetLimit] changes the bounds of a limit while workers
// execute its steps.
type Limit struct {
	name     string
	settings store.LimitSettings
	err      error
}

// NewLimit returns the limit with the given name. The options of NewLimit are [Concurrent], [Rate] and [Burst]. If an option is
// invalid, the steps that use the limit return [ErrInvalidConfig].
//
// A worker declares the limit when one of its steps requests a permit. If programs of several versions (Config.Version) declare
// different bounds, the bounds of the newest version apply. The newest version is the version whose first declaration of the
// limit is the most recent. If workers of one version declare different bounds, the bounds of the worker that started last
// apply. Declare each limit in one place, with a name of its own.
func NewLimit(name string, opts ...LimitOption) *Limit {
	l := &Limit{name: name}
	var o limitOptions
	err := applyOptions(opts, &o)
	l.settings, l.err = o.bounds.toStore(), errors.Join(err, naming.Check("limit", name), o.err)
	if l.err == nil {
		l.err = o.bounds.check()
	}
	if l.err != nil {
		l.err = fmt.Errorf("limit %q: %w", name, l.err)
	}
	return l
}

// Name returns the name of the limit.
func (l *Limit) Name() string { return l.name }

// LimitOption configures a [Limit].
type LimitOption func(*limitOptions)

type limitOptions struct {
	givenOptions
	bounds LimitBounds
}

const (
	optionConcurrent optionSet = 1 << iota
	optionRate
	optionBurst
)

// Concurrent bounds how many units of the limit are held at once. A permit holds one unit, or as many units as [Units] sets.
// The argument n must be positive.
func Concurrent(n int) LimitOption {
	return func(o *limitOptions) {
		o.addOptionOnce(optionConcurrent, "Concurrent")
		o.bounds.Concurrent = n
		if n <= 0 {
			o.setFirstError(fmt.Errorf("%w: Concurrent(%d): it must be positive; leave the option out for no bound", ErrInvalidConfig, n))
		}
	}
}

// Rate bounds how many units are granted in a period, evenly spread: in any half-open window of length w at most n*w/per, plus
// [Burst]. The database's clock measures the windows of a Rate. After a failover or a restore of the database, the limit grants
// nothing for the longest of Config.Lease, per, and per*Burst/n. The arguments n and per must be positive.
func Rate(n int, per time.Duration) LimitOption {
	return func(o *limitOptions) {
		o.addOptionOnce(optionRate, "Rate")
		o.bounds.Rate, o.bounds.Period = n, per
		if n <= 0 || per <= 0 {
			o.setFirstError(fmt.Errorf("%w: Rate(%d, %v): both must be positive; leave the option out for no bound", ErrInvalidConfig, n, per))
		}
	}
}

// Burst is how many units of a [Rate] may be granted at one moment, if no units were granted for a while. The default is 1. The
// argument n must be positive.
func Burst(n int) LimitOption {
	return func(o *limitOptions) {
		o.addOptionOnce(optionBurst, "Burst")
		o.bounds.Burst = n
		if n <= 0 {
			o.setFirstError(fmt.Errorf("%w: Burst(%d): it must be positive", ErrInvalidConfig, n))
		}
	}
}

// maxBurstTime is the longest time that a rate may take to grant its burst, so that no time is out of range.
const maxBurstTime = 365 * 24 * time.Hour

// LimitBounds are the bounds of a [Limit]. Zero means no bound.
type LimitBounds struct {
	Concurrent int           // the largest number of units that are held at once
	Rate       int           // the largest number of units that are granted per Period
	Period     time.Duration // the period of Rate, rounded down to whole microseconds
	Burst      int           // the largest number of units that are granted at one moment; with a Rate, zero means 1
}

// check returns ErrInvalidConfig with the name of the field and the fix.
func (b LimitBounds) check() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"Concurrent", b.Concurrent}, {"Rate", b.Rate}, {"Burst", b.Burst}} {
		if f.value < 0 || f.value > math.MaxInt32 {
			return fmt.Errorf("%w: %s is %d: it must be from 0 to %d", ErrInvalidConfig, f.name, f.value, math.MaxInt32)
		}
	}
	switch {
	case b.Rate > 0 && b.Period < time.Microsecond:
		return fmt.Errorf("%w: Period is %v: a Rate needs a period of at least a microsecond", ErrInvalidConfig, b.Period)
	case b.Rate == 0 && (b.Period != 0 || b.Burst != 0):
		return fmt.Errorf("%w: Period is %v and Burst is %d without a Rate: set Rate, or leave them out", ErrInvalidConfig, b.Period, b.Burst)
	case b.Rate > 0 && float64(b.Period)/float64(b.Rate)*float64(max(1, b.Burst)) > float64(maxBurstTime):
		return fmt.Errorf("%w: a Rate of %d per %v takes more than a year to grant a Burst of %d: lower the Burst or raise the Rate", ErrInvalidConfig, b.Rate, b.Period, max(1, b.Burst))
	}
	return nil
}

func (b LimitBounds) toStore() store.LimitSettings {
	s := store.LimitSettings{Concurrent: b.Concurrent, Rate: b.Rate, Period: b.Period.Truncate(time.Microsecond), Burst: b.Burst}
	if s.Rate > 0 {
		s.Burst = max(1, s.Burst)
	}
	return s
}

func newLimitBounds(s store.LimitSettings) LimitBounds {
	return LimitBounds{Concurrent: s.Concurrent, Rate: s.Rate, Period: s.Period, Burst: s.Burst}
}

// Permit makes each attempt of a step wait for a permit of the limit. The step gives the permit back when its function has
// returned. The options of Permit are [LimitKey] and [Units].
//
// Steps get their permits in the order in which they began to wait; a step that waits for many units is not overtaken by steps
// that need fewer units. The wait for a permit counts towards [TotalTimeout], but not towards [AttemptTimeout]. A step that
// waits long takes neither memory nor a slot of a worker, and keeps its position in the order when its process dies. When a run
// is paused, its waiting steps lose their positions in the order.
//
// A permit ends when the lease of the step's run ends, when the run is terminated, and when the step no longer waits for a function
// that ignores the end of its context (see [AttemptTimeout]). If a process is suspended for longer than the lease and then continues,
// the step's function may still be executing while another step has the permit.
func (l *Limit) Permit(opts ...PermitOption) StepOption {
	return func(o *stepOptions) {
		o.addOptionOnce(optionPermit, "Permit")
		if l == nil {
			o.setFirstError(fmt.Errorf("%w: the *Limit is nil: make it with NewLimit", ErrInvalidConfig))
			return
		}
		p := permitOptions{units: 1}
		o.setFirstError(l.err)
		o.setFirstError(applyOptions(opts, &p))
		o.setFirstError(p.err)
		if most := l.settings.CapUnits(p.units); most < p.units {
			o.setFirstError(fmt.Errorf("%w: Units(%d) of limit %q, which grants at most %d at once: ask for fewer, or raise Concurrent and Burst",
				ErrInvalidConfig, p.units, l.name, most))
		}
		o.permit = &engine.PermitSpec{Limit: l.name, Key: p.key, Units: p.units, Settings: l.settings}
	}
}

// PermitOption configures a [Limit.Permit].
type PermitOption func(*permitOptions)

type permitOptions struct {
	givenOptions
	key   string
	units int
}

const (
	optionLimitKey optionSet = 1 << iota
	optionUnits
)

// LimitKey gives the step a key, for example a customer. The bounds of the limit apply to each LimitKey separately, and steps
// with different keys do not wait for each other.
func LimitKey(key string) PermitOption {
	return func(o *permitOptions) {
		o.addOptionOnce(optionLimitKey, "LimitKey")
		o.setFirstError(naming.Check("limit key", key))
		o.key = key
	}
}

// Units sets how many units of the limit each attempt needs, for example tokens of a model. The default is 1. The argument n
// must be positive, and not more than the limit grants at once. If an operator has lowered the bounds below n, the step takes
// as many units as the limit grants at once.
func Units(n int) PermitOption {
	return func(o *permitOptions) {
		o.addOptionOnce(optionUnits, "Units")
		o.units = n
		if n <= 0 || n > math.MaxInt32 {
			o.setFirstError(fmt.Errorf("%w: Units(%d): it must be from 1 to %d", ErrInvalidConfig, n, math.MaxInt32))
		}
	}
}

// LimitInfo is a limit as [Engine.Limits] returns it.
type LimitInfo struct {
	Name        string
	LimitBounds // the bounds that apply: Set, or Declared if Set is nil

	Declared        *LimitBounds // the bounds that code has declared; nil if no code has declared the limit
	DeclaredVersion string       // the Config.Version of the code that declared the bounds
	DeclaredAt      time.Time
	Set             *LimitBounds // the bounds that SetLimit has set; nil if SetLimit has set none
	SetBy           string
	SetReason       string
	SetAt           time.Time
	LastChange      *OperatorChange // the last change by an operator; nil if no operator has changed the limit

	LimitUse
	Keys []LimitKeyUse // the ten keys for which the most steps wait; empty for a limit without keys
}

// LimitUse tells how much of a limit is in use.
type LimitUse struct {
	Held    int // the number of units that executing steps hold
	Offered int // the number of units that are reserved for steps whose runs were woken
	Waiting int // the number of steps that wait for a permit
}

// LimitKeyUse tells how much of a limit is in use for one [LimitKey].
type LimitKeyUse struct {
	Key string
	LimitUse
}

// Limits returns the limits that code has used or SetLimit has set, ordered by name.
func (e *Engine) Limits(ctx context.Context) ([]LimitInfo, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("list the limits: %w", err)
	}
	rows, err := e.inner.Limits(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]LimitInfo, len(rows))
	for i, r := range rows {
		all[i] = LimitInfo{
			Name: r.Name, LimitBounds: newLimitBounds(r.LimitSettings), DeclaredVersion: r.DeclaredVersion, DeclaredAt: r.DeclaredAt,
			SetBy: r.SetBy, SetReason: r.SetReason, SetAt: r.SetAt, LastChange: newOperatorChange(r.LastChange), LimitUse: LimitUse(r.LimitUse),
		}
		if r.DeclaredSettings != nil {
			all[i].Declared = new(newLimitBounds(*r.DeclaredSettings))
		}
		if r.OperatorSettings != nil {
			all[i].Set = new(newLimitBounds(*r.OperatorSettings))
		}
		for _, k := range r.Keys {
			all[i].Keys = append(all[i].Keys, LimitKeyUse{k.Key, LimitUse(k.LimitUse)})
		}
	}
	return all, nil
}

// SetLimit sets the bounds of a limit, from any process and while workers execute its steps. The bounds of SetLimit apply
// within a second, and replace the bounds that code declares until [Engine.ResetLimit] or [Engine.DeleteLimit]. Steps that
// already hold permits keep them. The options of SetLimit are [Reason] and [Actor]. SetLimit returns [ErrInvalidConfig] with
// the name of the field if a bound is invalid, [ErrSchema] while a running worker has a version of durable that ignores limits,
// and a [*WriteError] as [Workflow.Start] does.
func (e *Engine) SetLimit(ctx context.Context, name string, b LimitBounds, opts ...ControlOption) error {
	return e.changeLimit(ctx, "set", name, opts, func(o *controlOptions) error {
		if err := b.check(); err != nil {
			return fmt.Errorf("set limit %q: %w", name, err)
		}
		return e.inner.SetLimit(ctx, store.LimitChangeRequest{Name: name, Settings: b.toStore(), Actor: o.actor, Reason: o.reason})
	})
}

// ResetLimit removes the bounds that SetLimit has set, so that the bounds that code has declared apply within a second. The
// options of ResetLimit are [Reason] and [Actor]. ResetLimit returns [ErrNotFound] if there is no such limit, [ErrState] if no
// code has declared the limit, [ErrInvalidName], [ErrSchema] as SetLimit does, and a [*WriteError] as [Workflow.Start] does.
func (e *Engine) ResetLimit(ctx context.Context, name string, opts ...ControlOption) error {
	return e.changeLimit(ctx, "reset", name, opts, func(o *controlOptions) error {
		err := e.inner.ResetLimit(ctx, store.DeleteOrResetRequest{Name: name, Actor: o.actor, Reason: o.reason})
		if errors.Is(err, engine.ErrNotDeclared) {
			return fmt.Errorf("%w: cannot reset limit %q: no code has declared it: use DeleteLimit to remove its bounds", ErrState, name)
		}
		return err
	})
}

// DeleteLimit removes the recorded bounds of a limit: both the bounds that SetLimit has set and the bounds that code has
// declared. When the next step requests a permit, the bounds that the step's code declares apply. Steps that wait for a permit
// of a deleted limit keep their order. To remove only the bounds of SetLimit, call [Engine.ResetLimit] instead: if workers of
// two versions live, DeleteLimit can make the bounds of the old version apply. The options of DeleteLimit are [Reason] and
// [Actor]. DeleteLimit returns [ErrNotFound] if there is no such limit, [ErrInvalidName], [ErrSchema] as SetLimit does, and a
// [*WriteError] as [Workflow.Start] does.
func (e *Engine) DeleteLimit(ctx context.Context, name string, opts ...ControlOption) error {
	return e.changeLimit(ctx, "delete", name, opts, func(o *controlOptions) error {
		return e.inner.DeleteLimit(ctx, store.DeleteOrResetRequest{Name: name, Actor: o.actor, Reason: o.reason})
	})
}

// changeLimit checks the arguments of a method that changes a limit, and calls change.
func (e *Engine) changeLimit(ctx context.Context, verb, name string, opts []ControlOption, change func(*controlOptions) error) error {
	err := e.checkUsableOutsideWorkflow(ctx, "a change of a limit", "a step")
	var o controlOptions
	if err == nil {
		o, err = applyActorReasonOptions("a change of a limit", opts)
	}
	if err == nil {
		err = naming.Check("limit", name)
	}
	if err != nil {
		return fmt.Errorf("%s limit %.100q: %w", verb, name, err)
	}
	return change(&o)
}
