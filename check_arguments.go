package durable

import (
	"context"
	"fmt"
	"reflect"

	"github.com/seed8ec063be/durable/internal/engine"
)

// applyOptions calls each option with o. It returns ErrInvalidConfig if an option is nil.
func applyOptions[O any, F ~func(*O)](opts []F, o *O) error {
	var err error
	for i, option := range opts {
		switch {
		case option != nil:
			option(o)
		case err == nil:
			err = fmt.Errorf("%w: the %v at place %d of %d options is nil: leave it out", ErrInvalidConfig, reflect.TypeFor[F](), i+1, len(opts))
		}
	}
	return err
}

// checkUsable returns ErrInvalidConfig if the engine or the context is nil, or the engine was not created by New.
func (e *Engine) checkUsable(ctx context.Context) error {
	switch {
	case e == nil || e.inner == nil:
		return fmt.Errorf("%w: the *Engine is nil or empty: make it with New", ErrInvalidConfig)
	case isNil(ctx):
		return fmt.Errorf("%w: the context is nil: pass the caller's own, or context.Background()", ErrInvalidConfig)
	}
	return nil
}

// checkUsableOutsideWorkflow does what checkUsable does, for a method that writes. A workflow function may call such a method only in a step:
// if ctx is the Ctx of a workflow, or is derived from it, checkUsableOutsideWorkflow returns ErrOutsideStep. The text of the error names
// call, which is the method that was called, and instead, which is what to use in its place.
func (e *Engine) checkUsableOutsideWorkflow(ctx context.Context, call, instead string) error {
	if err := e.checkUsable(ctx); err != nil {
		return err
	}
	return engine.CheckOutsideWorkflow(ctx, call, instead)
}

// isZeroStore reports whether a store is the zero value of a type that embeds its methods in an unexported field, as the stores of
// packages sqlite and postgres do. Open never returns such a value.
func isZeroStore(s Store) bool {
	v := reflect.Indirect(reflect.ValueOf(s))
	for i := 0; v.Kind() == reflect.Struct && i < v.NumField(); i++ {
		if f := v.Field(i); v.Type().Field(i).Anonymous && !v.Type().Field(i).IsExported() && f.Kind() == reflect.Interface && f.IsNil() {
			return true
		}
	}
	return false
}

// isNil reports whether v is nil, or holds a nil pointer.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	p := reflect.ValueOf(v)
	return p.Kind() == reflect.Pointer && p.IsNil()
}
