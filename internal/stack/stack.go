// Package stack finds out where goroutines are, from what the runtime shows of their stacks. The engine uses
// it to refuse durable calls inside steps, to tell goroutines apart, and to log the stack of a function that
// does not return.
package stack

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
)

// GoroutineID returns the number of the calling goroutine. The runtime shows that number only in stack
// traces.
func GoroutineID() string {
	var b [32]byte
	_, rest, _ := bytes.Cut(b[:runtime.Stack(b[:], false)], []byte(" "))
	id, _, _ := bytes.Cut(rest, []byte(" "))
	return string(id)
}

// FunctionName returns the name of a function or a method expression, as IsInside takes it.
func FunctionName(f any) string { return runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name() }

// IsInside reports whether the calling goroutine is inside the function, at any depth of its stack.
func IsInside(function string) bool {
	var some [128]uintptr
	pcs := some[:]
	n := runtime.Callers(2, pcs)
	for n == len(pcs) {
		pcs = make([]uintptr, 4*len(pcs))
		n = runtime.Callers(2, pcs)
	}
	for frames := runtime.CallersFrames(pcs[:n]); ; {
		frame, more := frames.Next()
		if frame.Function == function {
			return true
		}
		if !more {
			return false
		}
	}
}

// Position returns the file and the line of a program counter, without the folder of the file.
func Position(pc uintptr) string {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	if frame.File == "" {
		return "unknown position"
	}
	return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
}

// All returns the stacks of all goroutines. It cuts them after one MiB.
func All() []string {
	all := make([]byte, 1<<20)
	return strings.Split(string(all[:runtime.Stack(all, true)]), "\n\n")
}
