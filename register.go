package durable

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/seed8ec063be/durable/internal/engine"
)

// registry maps codes, as recorded in the database, to sentinel errors.
var registry = struct {
	sync.RWMutex
	codes  []string // in the order of registration
	wrong  error    // the registrations that were refused
	errors map[string][]error
}{errors: make(map[string][]error)}

// RegisterError gives a sentinel error a code that is recorded with failures, so that
// errors.Is finds the sentinel in a replayed StepError or RunError as it did in the
// first one. It answers the sentinel, for use in a declaration:
//
//	var ErrDeclined = durable.RegisterError("payment.declined", errors.New("card declined"))
//
// Codes are kept in the database: never change one. Those of this library begin with
// "durable." and "context.". Sentinels with one code are all found by it.
//
// An empty or reserved code, a nil sentinel, and a sentinel whose value cannot be compared, which errors.Is would
// never find, are not registered: [New] then returns ErrInvalidConfig, which names each of them. For a nil sentinel
// RegisterError returns that error too.
func RegisterError(code string, sentinel error) error {
	err := engine.CheckName("error code", code)
	switch {
	case err != nil:
	case strings.HasPrefix(code, "durable."), strings.HasPrefix(code, "context."):
		err = errors.New("codes of this prefix are the library's own: choose another")
	case isNil(sentinel):
		err = errors.New("the sentinel is nil")
	case !reflect.ValueOf(sentinel).Comparable():
		err = fmt.Errorf("the sentinel is a %T, whose values cannot be compared, so that errors.Is does not find it: make it with errors.New, or use a pointer", sentinel)
	default:
		return register(code, sentinel)
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

// misregistered returns the errors of the registrations that were refused; nil if there are none.
func misregistered() error {
	registry.RLock()
	defer registry.RUnlock()
	return registry.wrong
}

// register gives a sentinel its code.
func register(code string, sentinel error) error {
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

// The library's own sentinels, in a fixed order: the first code of a failure is its
// error.type.
func init() {
	for _, own := range []struct {
		code     string
		sentinel error
	}{
		{engine.CodePanic, ErrPanic},
		{engine.CodeGoexit, ErrGoexit},
		{engine.CodeOutsideStep, ErrOutsideStep},
		{"durable.returned", ErrReturned},
		{engine.CodeTimeout, ErrTimeout},
		{engine.CodeOutcomeUnknown, ErrOutcomeUnknown},
		{engine.CodeRefused, ErrRefused},
		{engine.CodeDiverged, ErrDiverged},
		{engine.CodeTerminated, ErrTerminated},
		{engine.CodeCancelled, ErrCancelled},
		{engine.CodeCompensation, ErrCompensation},
		{engine.CodeCrashLoop, ErrCrashLoop},
		{"durable.state", ErrState},
		{"durable.not_encodable", ErrNotEncodable},
		{"durable.payload_too_large", ErrPayloadTooLarge},
		{"durable.duplicate_step", ErrDuplicateStep},
		{"durable.nested_step", ErrNestedStep},
		{"durable.inside_tx", ErrInsideTx},
		{"durable.invalid_name", ErrInvalidName},
		{"durable.id_conflict", ErrIDConflict},
		{"durable.not_found", ErrNotFound},
		{"durable.not_registered", ErrNotRegistered},
		{"durable.invalid_cursor", ErrInvalidCursor},
		{"durable.unavailable", ErrUnavailable},
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
		_ = register(own.code, own.sentinel)
	}
}

func sentinels(codes []string) []error {
	registry.RLock()
	defer registry.RUnlock()
	var all []error
	for _, code := range codes {
		all = append(all, registry.errors[code]...)
	}
	return all
}
