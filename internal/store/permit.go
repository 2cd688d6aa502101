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

// LimitSettings are the bounds of a limit. A field that is zero sets no bound.
type LimitSettings struct {
	Concurrent int           `json:"concurrent,omitzero"` // units that are held at once
	Rate       int           `json:"rate,omitzero"`       // units that are granted per Period
	Period     time.Duration `json:"period,omitzero"`     // in whole microseconds; positive with a Rate
	Burst      int           `json:"burst,omitzero"`      // units that may be granted at one moment; at least 1 with a Rate
}

// rate returns the rate of the limit, or the zero Rate if the limit has none.
func (s LimitSettings) rate() Rate { return Rate{Count: s.Rate, Period: s.Period, Burst: s.Burst} }

// CapUnits returns the requested number of units, or the largest number of units that the limit can ever grant at once, whichever is
// smaller. Because of CapUnits, a limit that was lowered delays a step, but does not block it forever.
func (s LimitSettings) CapUnits(units int) int {
	if s.Concurrent > 0 {
		units = min(units, s.Concurrent)
	}
	if s.Rate > 0 {
		units = min(units, s.Burst)
	}
	return units
}

// Limit is one limit as the database holds it.
type Limit struct {
	Name string
	LimitSettings

	// Code declares settings. The settings of the newest version apply, unless an operator has set others.
	DeclaredSettings *LimitSettings // nil: no code has declared any
	DeclaredVersion  string
	DeclaredAt       time.Time
	OperatorSettings *LimitSettings // nil: no operator has set any
	SetBy            string
	SetReason        string
	SetAt            time.Time
	LastChange       *OperatorChange // nil: no operator has changed the limit

	LimitUse
	Keys []LimitKeyUse // the keys for which most steps wait, at most MaxListedLimitKeys
}

// MaxListedLimitKeys is the maximal length of Limit.Keys.
const MaxListedLimitKeys = 10

// LimitUse tells how many units of a limit are in use.
type LimitUse struct {
	Held    int // units of executing steps
	Offered int // units that are kept for steps which have been woken
	Waiting int // steps in line
}

// LimitKeyUse is the LimitUse of one key of a limit.
type LimitKeyUse struct {
	Key string
	LimitUse
}

// LimitChangeRequest sets the bounds of a limit for an operator. The bounds of an operator apply instead of the bounds that code declares.
type LimitChangeRequest struct {
	Name     string
	Settings LimitSettings
	Now      time.Time
	Actor    string // who sets the bounds, and why
	Reason   string
}

// OperatorChange returns the OperatorChange that the store records for the change of the limit.
func (c *LimitChangeRequest) OperatorChange() OperatorChange {
	return OperatorChange{Verb: OperatorSet, At: c.Now, By: c.Actor, Reason: c.Reason}
}

// PermitStatus tells whether a step waits for a permit of a limit, or has a permit. The database stores the numbers of PermitStatus
// constants.
type PermitStatus int16

// The states of a permit.
const (
	PermitWaiting PermitStatus = 1 // the step is in line
	PermitOffered PermitStatus = 2 // the units are kept for the step until OfferedUntil; its run was woken
	PermitHeld    PermitStatus = 3 // the step's attempt executes
)

// PermitRow is the row of a step that waits for a permit of a limit, or has a permit. A step has at most one PermitRow.
type PermitRow struct {
	Limit, Key   string
	Run          uuid.UUID
	Step         string
	Status       PermitStatus
	Epoch        Epoch // of the execution that last requested the permit
	Attempt      int32
	Units        int
	Priority     int16
	ArrivedAt    time.Time // when the step entered the line; the step keeps its place as long as it has the row
	GrantedAt    time.Time // zero: not granted
	OfferedUntil time.Time // the end of an offer
	MissedOffer  bool      // an offer ended unused, or the execution has ended: the step gets no further offer until it requests the permit again
}

// PermitRequest is the request of a step's attempt for a permit.
type PermitRequest struct {
	Limit, Key string
	Settings   LimitSettings // what the code of the worker declares
	Run        uuid.UUID
	Step       string
	Epoch      Epoch
	Attempt    int32
	Units      int // at least 1
	Priority   int16
	ArrivedAt  time.Time // zero: the step is new in the line; the store sets it to the step's ArrivedAt in the line, unless Outcome is Fenced

	// Outcome is Written if the attempt has got the permit, Locked if the step waits in line, and Fenced if the run is not running at the
	// epoch.
	Outcome      WriteOutcome
	GrantedAt    time.Time // when the permit was granted
	LimitHasRate bool      // the limit has a rate, so that the grant must be used soon
	RetryAt      time.Time // when the attempt should repeat the request; zero: its run will be woken
	RunState     RunState  // of the run, with Fenced
}

// PermitReturn gives back a permit, or gives up the step's place in the line for a permit. A PermitReturn changes nothing if another
// execution of the run has the permit.
type PermitReturn struct {
	Limit, Key string
	Run        uuid.UUID
	Step       string
	Epoch      Epoch
	Attempt    int32
}

// NewPermitReturn returns a PermitReturn that gives back the requested permit, or gives up the step's place in the line for it.
func (a *PermitRequest) NewPermitReturn() PermitReturn {
	return PermitReturn{Limit: a.Limit, Key: a.Key, Run: a.Run, Step: a.Step, Epoch: a.Epoch, Attempt: a.Attempt}
}

// PermitBatch is the argument of LimitStore.GrantAndReturnPermits. A PermitBatch contains requests for permits, and permits that are
// given back.
type PermitBatch struct {
	Now                      time.Time
	Version                  string        // of the requesting worker
	WorkerStarted            time.Time     // when that worker started
	CloseDurationAfterRewind time.Duration // how long nothing is granted after the database went back to an earlier state; longer if the rate needs longer to recover a whole burst
	Requests                 []*PermitRequest
	Returns                  []PermitReturn
	LimitKeys                []LimitKey // to check although no step requests a permit for them

	// RecheckAt tells for limit keys when to call GrantAndReturnPermits again, because more units can be granted then. The store sets
	// RecheckAt together with the outcomes of the requests.
	RecheckAt map[LimitKey]time.Time
}

// ScheduleRecheck records in RecheckAt that the limit key must be checked again at the given time, because the limit can grant more
// units of this key then.
func (b *PermitBatch) ScheduleRecheck(g LimitKey, at time.Time) {
	if b.RecheckAt == nil {
		b.RecheckAt = make(map[LimitKey]time.Time)
	}
	b.RecheckAt[g] = at
}

// LimitKey is a limit together with one of the keys that steps use for it; the key may be empty. Each LimitKey has a line of waiting steps
// of its own.
type LimitKey struct{ Limit, Key string }

// AllLimitKeys returns the limit keys that the batch names, each once, in the order in which a store locks them.
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

// LimitKeyWithUse is a limit key together with the number of its units in use.
type LimitKeyWithUse struct {
	LimitKey
	LimitUse
}

// AddLimitUse sets in each limit how many of its units are in use. AddLimitUse ignores permits of a limit that has no row.
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
		limits[i].Keys = keys[:min(len(keys), MaxListedLimitKeys)]
	}
	return limits
}

// EncodeJSON returns the settings as JSON, the form in which the database stores them.
func (s LimitSettings) EncodeJSON() string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("store: numbers do not encode: " + err.Error())
	}
	return string(b)
}

// DecodeLimitSettings decodes the stored JSON of a limit's settings. DecodeLimitSettings returns nil for an empty text.
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

// LimitStore keeps the limits on steps and the permits of steps.
type LimitStore interface {
	// GrantAndReturnPermits gives back the permits that the batch returns, and grants free units to the requesting steps and to the steps
	// in line, in one transaction. GrantAndReturnPermits locks each limit key of the batch, so that concurrent calls grant permits one
	// after the other, and never more than are free. An offer of a permit to a waiting step wakes the run of the step.
	// GrantAndReturnPermits does not wait for a run that another transaction has locked: the next step in line gets the offer, and the
	// limit key must be checked again soon.
	//
	// GrantAndReturnPermits records the bounds that the requests declare, by the rules of LimitDeclaration.
	//
	// A permit belongs to one attempt of a step, and ends at the latest when the lease of the step's run ends. A step of a paused run has no
	// place in the line for a permit.
	GrantAndReturnPermits(ctx context.Context, b *PermitBatch) error

	// LimitKeysWithWaiters returns limit keys for which at least one step waits, ordered by limit and key. LimitKeysWithWaiters returns
	// keys that come after the given one, and no more than the given number.
	LimitKeysWithWaiters(ctx context.Context, after LimitKey, limit int) ([]LimitKey, error)

	// DeleteUnusedLimitKeys deletes limit keys that no step has used for a long time; see DeleteUnusedLimitKeysRequest.
	DeleteUnusedLimitKeys(ctx context.Context, q DeleteUnusedLimitKeysRequest) (DeleteUnusedLimitKeysResult, error)

	// ChangeLimit sets the bounds that an operator gives a limit.
	ChangeLimit(ctx context.Context, c LimitChangeRequest) error

	// DeleteLimit deletes a limit's row, with the bounds that an operator has set. The limit keys of a deleted limit stay until
	// DeleteUnusedLimitKeys deletes them. DeleteLimit reports whether the limit had a row.
	DeleteLimit(ctx context.Context, c DeleteOrResetRequest) (bool, error)

	// ResetLimitSettings removes the bounds that an operator has set for a limit, so that the bounds that code has declared apply.
	// ResetLimitSettings reports whether the limit exists and code has declared it.
	ResetLimitSettings(ctx context.Context, c DeleteOrResetRequest) (bool, error)

	// Limits returns all limits with their use at the time now, ordered by name.
	Limits(ctx context.Context, now time.Time) ([]Limit, error)

	// PermitsOfRun returns the permits of the run's steps. For each step that waits in line, PermitsOfRun also returns how many steps are
	// before it.
	PermitsOfRun(ctx context.Context, run uuid.UUID) ([]QueuedPermit, error)
}

// DeleteUnusedLimitKeysRequest selects limit keys that can be deleted without an effect on steps. No step executes with a permit of such a
// limit key or waits for one, its rate is not used up at Now, and it is not closed at Now. DeleteUnusedLimitKeys keeps limit keys that were
// used since UsedBefore. So if the clock goes back to a time after UsedBefore, the rows of these keys, which hold the times up to which
// their rates are used up, still exist, and the rates are not exceeded. DeleteUnusedLimitKeys also keeps a limit key that another
// transaction has locked.
type DeleteUnusedLimitKeysRequest struct {
	After      LimitKey // the limit key that was read last before; zero: begin with the first one
	UsedBefore time.Time
	Now        time.Time
	Limit      int // the largest number of limit keys that are read
}

// DeleteUnusedLimitKeysResult is the result of a DeleteUnusedLimitKeysRequest.
type DeleteUnusedLimitKeysResult struct {
	Deleted int
	Next    LimitKey // for the next query; zero: there is no further limit key
}

// QueuedPermit is the permit of one step, with the place of the step in the line.
type QueuedPermit struct {
	PermitRow
	StepsAhead int // how many steps are before it in the line; zero unless it waits
}
