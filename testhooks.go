package durable

import "github.com/seed8ec063be/durable/internal/engine"

// init gives package durabletest the encoding of errors and results, so that stubs return what the real steps would.
// Package internal/engine holds the functions, because durabletest cannot call unexported functions of this package.
func init() {
	engine.FailureFromError = toRecordedFailure
	engine.EncodeValue = func(v any) ([]byte, error) { return encode(&v, maxStubResult) }
}

// maxStubResult is the largest encoded result of a stub, in bytes. It does not depend on Config.MaxPayload.
const maxStubResult = largestMaxPayload
