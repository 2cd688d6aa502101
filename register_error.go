package durable

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
)

// registry maps codes, as recorded in the database, to sentinel errors.
var registry = struct {
	sync.RWMutex
	codes  []string // in the order of registration
	wrong  error    // the errors of the registrations that were refused, joined
	errors map[string][]error
}{errors: make(map[string][]error)}

// RegisterError registers a sentinel error under a code, which is recorded with failures. With the recorded code, errors.Is
// also finds the sentinel in a [*StepError] or [*RunError] that is read from the database. RegisterError returns the sentinel
// itself, and not an error of the registration, so do not test the result for nil. Use RegisterError in a declaration:
//
//	var ErrDeclined = durable.RegisterError("payment.declined", errors.New("card declined"))
//
// Do not change the code of a sentinel, because codes are recorded in the database. Codes that begin with "durable." or
// "context." are reserved for this library. If several sentinels have the same code, errors.Is finds all of them.
//
// RegisterError does not register an invalid or reserved code, a nil sentinel, or a sentinel whose value cannot be compared,
// because errors.Is would never find such a sentinel. If a program has made an invalid registration, [New] returns
// [ErrInvalidConfig] with a text that lists every invalid registration. For a nil sentinel, RegisterError itself returns
// ErrInvalidConfig too.
func RegisterError(code string, sentinel error) error {
	err := naming.Check("error code", code)
	switch {
	case err != nil:
	case strings.HasPrefix(code, "durable."), strings.HasPrefix(code, "context."):
		err = errors.New("codes of this prefix are the library's own: choose another")
	case isNil(sentinel):
		err = errors.New("the sentinel is nil")
	case !reflect.ValueOf(sentinel).Comparable():
		err = fmt.Errorf("the sentinel is a %T, whose values cannot be compared, so that errors.Is does not find it: make it with errors.New, or use a pointer", sentinel)
	default:
		return registerCode(code, sentinel)
	}
	err = fmt.Errorf("%w: RegisterError(%.40q): %w", ErrInvalidConfig, code, err)
	registry.Lock()
	defer registry.Unlock()
	registry.wrong = errors.Join(registry.wrong, err)
	if isNil(sentinel) {
		return err
	}
	return sentinel
}

// registrationError returns the errors of the registrations that were refused; nil if there are none.
func registrationError() error {
	registry.RLock()
	defer registry.RUnlock()
	return registry.wrong
}

// registerCode adds a sentinel to those of the code, and returns it.
func registerCode(code string, sentinel error) error {
	registry.Lock()
	defer registry.Unlock()
	for _, known := range registry.errors[code] {
		if known == sentinel {
			return sentinel
		}
	}
	if len(registry.errors[code]) == 0 {
		registry.codes = append(registry.codes, code)
	}
	registry.errors[code] = append(registry.errors[code], sentinel)
	return sentinel
}

// init registers the library's own sentinels. Their order is fixed, because the first code of a failure is its attribute
// error.type in the telemetry.
func init() {
	for _, own := range []struct {
		code     string
		sentinel error
	}{
		{record.CodePanic, ErrPanic},
		{record.CodeGoexit, ErrGoexit},
		{record.CodeOutsideStep, ErrOutsideStep},
		{"durable.returned", ErrReturned},
		{record.CodeTimeout, ErrTimeout},
		{record.CodeOutcomeUnknown, ErrOutcomeUnknown},
		{record.CodeRefused, ErrRefused},
		{record.CodeUnreadable, ErrUnreadable},
		{record.CodeDiverged, ErrDiverged},
		{record.CodeTerminated, ErrTerminated},
		{record.CodeCancelled, ErrCancelled},
		{record.CodeCompensation, ErrCompensation},
		{record.CodeCrashLoop, ErrCrashLoop},
		{"durable.state", ErrState},
		{"durable.not_encodable", ErrNotEncodable},
		{"durable.payload_too_large", ErrPayloadTooLarge},
		{"durable.duplicate_step", ErrDuplicateStep},
		{"durable.nested_step", ErrNestedStep},
		{"durable.inside_tx", ErrInsideTx},
		{"durable.invalid_name", ErrInvalidName},
		{"durable.id_conflict", ErrIDConflict},
		{"durable.queue_full", ErrQueueFull},
		{"durable.queue_closed", ErrQueueClosed},
		{"durable.not_found", ErrNotFound},
		{"durable.live", ErrLive},
		{"durable.skipped", ErrThrottled},
		{"durable.no_graph", ErrNoGraph},
		{"durable.undeclared_need", ErrUndeclaredNeed},
		{"durable.node_skipped", ErrNodeSkipped},
		{"durable.not_chosen", ErrNotChosen},
		{"durable.not_registered", ErrNotRegistered},
		{"durable.invalid_cursor", ErrInvalidCursor},
		{"durable.unavailable", ErrUnavailable},
		{"durable.not_ready", ErrNotReady},
		{"durable.closed", ErrClosed},
		{"durable.moved", ErrMoved},
		{"durable.schema", ErrSchema},
		{"durable.running", ErrRunning},
		{"durable.invalid_config", ErrInvalidConfig},
		{"durable.locked", ErrLocked},
		{"durable.permission", ErrPermission},
		{"durable.rejected", ErrRejected},
		{"context.canceled", context.Canceled},
		{"context.deadline_exceeded", context.DeadlineExceeded},
	} {
		_ = registerCode(own.code, own.sentinel)
	}
}

func registeredSentinels(codes []string) []error {
	registry.RLock()
	defer registry.RUnlock()
	var all []error
	for _, code := range codes {
		all = append(all, registry.errors[code]...)
	}
	return all
}
