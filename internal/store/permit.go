package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// A limit bounds the steps of all workers together: how many units executing steps hold at once, and how
// many units are granted per period. An attempt of a step holds a permit while it executes. A step that
// gets no permit waits in a line, which is in the database, so that neither memory nor a lease is needed
// for it. Each limit has one line for each key that its steps name, and one for steps without a key. A limit together with
// one of these keys is called a limit key.

// LimitSettings are the bounds of a limit. Zero means no bound.
type LimitSettings struct {
	Concurrent int           `json:"concurrent,omitzero"` // units that are held at once
	Rate       int           `json:"rate,omitzero"`       // units that are granted per Period
	Period     time.Duration `json:"period,omitzero"`     // in whole microseconds; positive with a Rate
	Burst      int           `json:"burst,omitzero"`      // units that may be granted at one moment; at least 1 with a Rate
}

// rate returns the rate. Without one it is the zero value.
func (s LimitSettings) rate() Rate { return Rate{Count: s.Rate, Period: s.Period, Burst: s.Burst} }

// CapUnits returns the requested number of units, or the largest number that can ever be granted at once if that is smaller. So a
// limit that was lowered delays a step, but does not block it forever.
func (s LimitSettings) CapUnits(units int) int {
	if s.Concurrent > 0 {
		units = min(units, s.Concurrent)
	}
	if s.Rate > 0 {
		units = min(units, s.Burst)
	}
	return units
}

// Limit is one limit as it is recorded.
type Limit struct {
	Name string
	LimitSettings

	// Code declares settings. The settings of the newest version apply, unless an operator has set others.
	Declared        *LimitSettings // nil: no code has declared any
	DeclaredVersion string
	DeclaredAt      time.Time
	Set             *LimitSettings // nil: no operator has set any
	SetBy           string
	SetReason       string
	SetAt           time.Time
	LastChange      *OperatorChange // nil: no operator has changed the limit

	LimitUse
	Keys []LimitKeyUse // the keys for which most steps wait, at most MaxLimitKeys
}

// MaxLimitKeys is the largest length of Limit.Keys.
const MaxLimitKeys = 10

// LimitUse is how much of a limit is in use.
type LimitUse struct {
	Held    int // units of executing steps
	Offered int // units that are kept for steps which have been woken
	Waiting int // steps in line
}

// LimitKeyUse is LimitUse for one key.
type LimitKeyUse struct {
	Key string
	LimitUse
}

// LimitChangeRequest sets the bounds of a limit, whatever code declares.
type LimitChangeRequest struct {
	Name     string
	Settings LimitSettings
	Now      time.Time
	Actor    string // who sets the bounds, and why
	Reason   string
}

// OperatorChange returns the OperatorChange that is recorded for the request.
func (c *LimitChangeRequest) OperatorChange() OperatorChange {
	return OperatorChange{Verb: OperatorSet, At: c.Now, By: c.Actor, Reason: c.Reason}
}

// PermitStatus is the state of a step at a limit. The numbers are stored.
type PermitStatus int16

// The states of a permit.
const (
	PermitWaiting PermitStatus = 1 // the step is in line
	PermitOffered PermitStatus = 2 // the units are kept for the step until Until; its run was woken
	PermitHeld    PermitStatus = 3 // the step's attempt executes
)

// Permit is the row of a step at a limit. A step has at most one.
type Permit struct {
	Limit, Key  string
	Run         uuid.UUID
	Step        string
	Status      PermitStatus
	Epoch       Epoch // of the execution that requested it last
	Attempt     int32
	Units       int
	Priority    int16
	ArrivedAt   time.Time // when it entered the line; it keeps its place as long as it has the row
	GrantedAt   time.Time // zero: not granted
	Until       time.Time // the end of an offer
	MissedOffer bool      // an offer ended unused, or the execution has ended: there is no further offer until the step requests the permit again
}

// PermitRequest is the request of one attempt for a permit.
type PermitRequest struct {
	Limit, Key string
	Settings   LimitSettings // what the code of the worker declares
	Run        uuid.UUID
	Step       string
	Epoch      Epoch
	Attempt    int32
	Units      int // at least 1
	Priority   int16
	ArrivedAt  time.Time // zero: the step is new in the line; the outcome sets it to the place of the step, unless it is Fenced

	// Outcome is Written if the attempt holds the permit, Locked if it is in line, and Fenced if the run is
	// not running at the epoch.
	Outcome      WriteOutcome
	GrantedAt    time.Time // when the permit was granted
	LimitHasRate bool      // the limit has a rate, so that the grant must be used soon
	RetryAt      time.Time // when the attempt should repeat the request; zero: its run will be woken
	RunState     RunState  // of the run, with Fenced
}

// PermitReturn gives back a permit, or gives up a place in the line. It changes nothing if another execution has the permit.
type PermitReturn struct {
	Limit, Key string
	Run        uuid.UUID
	Step       string
	Epoch      Epoch
	Attempt    int32
}

// NewReturn returns the PermitReturn that gives back the permit of the request, or its place in the line.
func (a *PermitRequest) NewReturn() PermitReturn {
	return PermitReturn{Limit: a.Limit, Key: a.Key, Run: a.Run, Step: a.Step, Epoch: a.Epoch, Attempt: a.Attempt}
}

// PermitBatch is the argument of one call of Permits. The call gives permits back, and grants free units to the requesting steps
// and to the steps in line.
type PermitBatch struct {
	Now              time.Time
	Version          string        // of the requesting worker
	WorkerStarted    time.Time     // when that worker started
	CloseAfterRewind time.Duration // how long nothing is granted after the database went back to an earlier state; at least until a rate has paid back a whole burst
	Requests         []*PermitRequest
	Returns          []PermitReturn
	LimitKeys        []LimitKey // to check although no step requests a permit for them

	// RecheckAt is when to call Permits again for a limit key, because more units can be granted then. The store sets it together with
	// the outcomes.
	RecheckAt map[LimitKey]time.Time
}

// ScheduleRecheck records in RecheckAt that the limit key must be checked again at the time at, because more of its units can be
// granted then.
func (b *PermitBatch) ScheduleRecheck(g LimitKey, at time.Time) {
	if b.RecheckAt == nil {
		b.RecheckAt = make(map[LimitKey]time.Time)
	}
	b.RecheckAt[g] = at
}

// LimitKey is a limit with one of the keys that steps name, which may be empty. Each has its own line of waiting steps.
type LimitKey struct{ Limit, Key string }

// AllLimitKeys returns the limit keys that the batch names, each once, in the order in which they are locked.
func (b *PermitBatch) AllLimitKeys() []LimitKey {
	keys := slices.Clone(b.LimitKeys)
	for _, a := range b.Requests {
		keys = append(keys, LimitKey{a.Limit, a.Key})
	}
	for _, r := range b.Returns {
		keys = append(keys, LimitKey{r.Limit, r.Key})
	}
	slices.SortFunc(keys, LimitKey.compare)
	return slices.Compact(keys)
}

func (g LimitKey) compare(other LimitKey) int {
	return cmp.Or(strings.Compare(g.Limit, other.Limit), strings.Compare(g.Key, other.Key))
}

// LimitKeyWithUse is a limit key with how much of it is in use.
type LimitKeyWithUse struct {
	LimitKey
	LimitUse
}

// AddLimitUse fills in how much of each limit is in use. It ignores permits of a limit that has no row.
func AddLimitUse(limits []Limit, use []LimitKeyWithUse) []Limit {
	at := make(map[string]*Limit, len(limits))
	for i := range limits {
		at[limits[i].Name] = &limits[i]
	}
	for _, u := range use {
		l := at[u.Limit]
		if l == nil {
			continue
		}
		l.Held, l.Offered, l.Waiting = l.Held+u.Held, l.Offered+u.Offered, l.Waiting+u.Waiting
		if u.Key != "" {
			l.Keys = append(l.Keys, LimitKeyUse{u.Key, u.LimitUse})
		}
	}
	for i := range limits {
		keys := limits[i].Keys
		slices.SortStableFunc(keys, func(a, b LimitKeyUse) int {
			return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(b.Held, a.Held))
		})
		limits[i].Keys = keys[:min(len(keys), MaxLimitKeys)]
	}
	return limits
}

// EncodeJSON returns the recorded form of the settings.
func (s LimitSettings) EncodeJSON() string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("store: numbers do not encode: " + err.Error())
	}
	return string(b)
}

// DecodeLimitSettings decodes recorded settings. It returns nil for an empty text.
func DecodeLimitSettings(text string) (*LimitSettings, error) {
	if text == "" {
		return nil, nil
	}
	s := new(LimitSettings)
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, fmt.Errorf("the recorded bounds of a limit do not decode: %w", err)
	}
	return s, nil
}

// LimitStore keeps the limits on steps.
type LimitStore interface {
	// GrantAndReturnPermits changes the limit keys of all limits and keys that the batch names, in one transaction. It locks each limit key. So
	// concurrent calls grant permits one after the other, and never more than are free. An offer of a permit to a waiting step
	// wakes the run of the step. Permits does not wait for a run that another transaction has locked: the next in line gets the
	// offer, and the limit key must be checked again soon.
	//
	// Permits records what the requests declare as LimitDeclaration tells.
	//
	// A permit ends with the lease of its attempt. A step of a paused run has no place in a line.
	GrantAndReturnPermits(ctx context.Context, b *PermitBatch) error

	// LimitKeysWithWaiters returns up to limit limit keys after the given one for which a step waits, ordered by limit
	// and key.
	LimitKeysWithWaiters(ctx context.Context, after LimitKey, limit int) ([]LimitKey, error)

	// DeleteUnusedLimitKeys deletes limit keys that nobody has used for long; see DeleteUnusedLimitKeysRequest.
	DeleteUnusedLimitKeys(ctx context.Context, q DeleteUnusedLimitKeysRequest) (DeleteUnusedLimitKeysResult, error)

	// ChangeLimit sets the bounds of a limit.
	ChangeLimit(ctx context.Context, c LimitChangeRequest) error

	// DeleteLimit removes a limit's row, with what an operator has set. Its limit keys stay until DeleteUnusedLimitKeys. It
	// reports whether there was a row.
	DeleteLimit(ctx context.Context, c DeleteOrResetRequest) (bool, error)

	// ResetLimitSettings removes the bounds of an operator, so that those that code has declared apply. It reports
	// whether there is such a limit that code has declared.
	ResetLimitSettings(ctx context.Context, c DeleteOrResetRequest) (bool, error)

	// Limits returns all limits at the time now, ordered by name.
	Limits(ctx context.Context, now time.Time) ([]Limit, error)

	// PermitsOfRun returns the permits of the run's steps, with how many steps are before each of those that
	// wait.
	PermitsOfRun(ctx context.Context, run uuid.UUID) ([]QueuedPermit, error)
}

// DeleteUnusedLimitKeysRequest selects limit keys whose deletion changes nothing: no step executes or waits in them, and by Now their
// rates are no longer used up, and they are no longer closed. Limit keys that were used since UsedBefore stay, so that a clock
// that goes back by less than that finds the latest time of the limit key. A limit key that another transaction has locked stays
// too.
type DeleteUnusedLimitKeysRequest struct {
	After      LimitKey // the limit key that was read last before; zero: begin with the first one
	UsedBefore time.Time
	Now        time.Time
	Limit      int // the largest number of limit keys that are read
}

// DeleteUnusedLimitKeysResult is the result of an DeleteUnusedLimitKeysRequest.
type DeleteUnusedLimitKeysResult struct {
	Deleted int
	Next    LimitKey // for the next query; zero: there is no further limit key
}

// QueuedPermit is the permit of one step, and its place in the line.
type QueuedPermit struct {
	Permit
	Before int // steps of the line that are before it; zero unless it waits
}
