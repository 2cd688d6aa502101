// Package startkey decides what a start does whose key folds it with others: singletons, debounced starts and
// samples. It reads no database: a store locks the row of the key, calls Plan, and writes the result.
//
// # Repeated starts
//
// A start may be repeated although it took effect: because the reply of the database was lost, or because
// the step that makes it is executed again. A repeated start must not overwrite a newer one.
//
//   - The row has a stamp, which each start moves on. A start that repeats itself compares the stamp that it
//     has written, or has tried to write, with that of the row: if another start has moved it on since, that
//     one is newer. No clock decides this.
//   - A start in a step has an identity that follows from the step, so that another process knows it again.
//     The row remembers the latest of these identities with their runs.
//   - A start that has created its run finds it by its name.
package startkey

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Limits of a row.
const (
	// KeepRowFor is how long a row stays after its last start. For as long, a repeated start is recognized.
	KeepRowFor = 7 * 24 * time.Hour
	// MaxThrottle is the largest number of starts of a throttle. The row holds the time of each.
	MaxThrottle = 1000
	// maxCalls is how many starts of steps a row remembers.
	maxCalls = 64
)

// These errors are exported by the root package under the same names.
var (
	ErrLive    = errors.New("durable: a run with the key is live")
	ErrSkipped = errors.New("durable: the start was skipped")
)

// LiveError is returned by a start that is refused because a run with its key is live. It wraps ErrLive.
type LiveError struct {
	Workflow, Key string
	ID, RunID     string // of the live run
}

// Error returns a text with the key and the run.
func (e *LiveError) Error() string {
	return fmt.Sprintf("%v: run %q of workflow %q has the key %.100q: wait for its end, or use SingletonJoin or SingletonReplace", ErrLive, e.ID, e.Workflow, e.Key)
}

// Unwrap returns ErrLive.
func (e *LiveError) Unwrap() error { return ErrLive }

// SkippedError is returned by a start beyond the number that a throttle allows. It wraps ErrSkipped.
type SkippedError struct {
	Workflow, Key string
	Until         time.Time // when the next start with the key is possible
}

// Error returns a text with the key and the time.
func (e *SkippedError) Error() string {
	return fmt.Sprintf("%v: workflow %q was started as often as the option Throttle with the key %.100q allows: the next start is possible at %s",
		ErrSkipped, e.Workflow, e.Key, e.Until.UTC().Format(time.RFC3339Nano))
}

// Unwrap returns ErrSkipped.
func (e *SkippedError) Unwrap() error { return ErrSkipped }

// state is the JSON in StartKeyRow.State. Times are in microseconds since 1970, durations in microseconds.
type state struct {
	Stamp   int64            `json:"stamp"`             // of the newest start
	Live    uuid.UUID        `json:"live,omitzero"`     // the run that has begun, or may begin
	Waiting uuid.UUID        `json:"waiting,omitzero"`  // the run that is not released yet
	Cancels []uuid.UUID      `json:"cancels,omitempty"` // runs that waited and were replaced, until they are cancelled
	First   int64            `json:"first,omitzero"`    // when the first of the starts came that became Waiting
	Due     int64            `json:"due,omitzero"`      // before this time, Waiting is not due
	Timeout int64            `json:"timeout,omitzero"`  // of Waiting, from the time at which it is due
	StartBy int64            `json:"start_by,omitzero"` // by when Waiting must begin, from the same time
	Starts  []int64          `json:"starts,omitempty"`  // the times of throttled starts, oldest first
	Period  int64            `json:"period,omitzero"`   // of the throttle
	Calls   []rememberedCall `json:"calls,omitempty"`   // the latest starts of steps, oldest first
	Evicted int64            `json:"evicted,omitzero"`  // the stamp of the newest start of a step that is not remembered
}

// rememberedCall is one start that a step has made.
type rememberedCall struct {
	ID    string    `json:"id"`
	Run   uuid.UUID `json:"run"`
	Stamp int64     `json:"stamp"`
}

// decode returns the state of the row. A nil row has the zero state.
func decode(row *store.StartKeyRow) (s state, err error) {
	if row == nil {
		return s, nil
	}
	if err := json.Unmarshal(row.State, &s); err != nil {
		return s, fmt.Errorf("the row of key %q of workflow %q does not decode: %w", row.Key, row.Workflow, err)
	}
	return s, nil
}

// row returns the row with this state.
func (s *state) row(k store.StartKey, checkAt time.Time, after uuid.UUID, input []byte) store.StartKeyRow {
	return store.StartKeyRow{
		StartKey: k, CheckAt: checkAt, CheckAfterRun: uuid.NullUUID{UUID: after, Valid: after != uuid.Nil},
		WaitingRun: uuid.NullUUID{UUID: s.Waiting, Valid: s.Waiting != uuid.Nil}, State: s.encode(), WaitingInput: input,
	}
}

// encode returns the state as it is stored.
func (s *state) encode() []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // the type can always be encoded
	}
	return text
}

// WaitReason returns for what the run row.WaitingRun waits: the run live, if it is not the zero UUID, and the time due, if it is not zero.
func WaitReason(row *store.StartKeyRow) (live uuid.UUID, due time.Time, err error) {
	s, err := decode(row)
	if row.Kind == store.StartKeySingleton {
		live = s.Live
	}
	if s.Due != 0 {
		due = time.UnixMicro(s.Due)
	}
	return live, due, err
}

// remember adds a start of a step.
func (s *state) remember(id string, run uuid.UUID) {
	if id == "" {
		return
	}
	s.Calls = append(s.Calls, rememberedCall{ID: id, Run: run, Stamp: s.Stamp})
	if over := len(s.Calls) - maxCalls; over > 0 {
		s.Evicted = s.Calls[over-1].Stamp
		s.Calls = slices.Delete(s.Calls, 0, over)
	}
}

// findCallRun returns the run of a start that a step has made before.
func (s *state) findCallRun(id string) (run uuid.UUID, found bool) {
	for i := range s.Calls {
		if id != "" && s.Calls[i].ID == id {
			return s.Calls[i].Run, true
		}
	}
	return uuid.Nil, false
}

// runs returns the runs that a plan reads.
func (s *state) runs() []uuid.UUID {
	list := slices.Clone(s.Cancels)
	for _, id := range []uuid.UUID{s.Live, s.Waiting} {
		if id != uuid.Nil {
			list = append(list, id)
		}
	}
	return list
}

// isLive reports whether the run exists and has not ended.
func isLive(s store.StartKeySnapshot, id uuid.UUID) bool {
	r, found := s.Runs[id]
	return found && !r.Status.IsTerminal()
}

// isLiveAndUnstarted reports whether the run is live, was never executed, and is not to be cancelled.
func isLiveAndUnstarted(s store.StartKeySnapshot, id uuid.UUID) bool {
	r := s.Runs[id]
	return isLive(s, id) && r.Epoch.Count == 0 && r.Control&store.CancelRequested == 0
}

func micros(t time.Time) int64 { return t.UnixMicro() }
