// Package testsize says how much the tests of this module do. By default each test executes a
// small form of itself, so that go test ./... ends within 90 seconds on two cores. The environment
// variable DURABLE_TEST=all, which make test-all sets, asks for everything: every mode, every seed, the long matrices. No row and no
// promise is left out of the small form.
//
// The library never imports this package.
package testsize

import (
	"fmt"
	"os"
)

// Variable is the name of the environment variable. Its values are "all" and "small", the default.
const Variable = "DURABLE_TEST"

// IsFull reports whether the tests do everything. Processes that tests start inherit it.
func IsFull() bool {
	switch v := os.Getenv(Variable); v {
	case "all":
		return true
	case "", "small":
		return false
	default:
		panic(fmt.Sprintf("%s=%q is neither all nor small", Variable, v))
	}
}

// Of returns the size of a test: all if the tests do everything, else small.
func Of[T any](all, small T) T {
	if IsFull() {
		return all
	}
	return small
}
