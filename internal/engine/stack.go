package engine

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
)

// stackOf returns the stack of the goroutine that executes the run's function, which it finds by the
// run's address in the frame of run.call. If there is none, stackOf returns the stacks of all goroutines
// that execute a workflow function or a step.
func stackOf(r *run) string {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	own := fmt.Sprintf("engine.(*run).call(%p", r)
	var stuck []string
	for stack := range strings.SplitSeq(string(all), "\n\n") {
		if strings.Contains(stack, own) {
			return stack
		}
		if strings.Contains(stack, "engine.(*run).call") || strings.Contains(stack, "engine.(*task).call") {
			stuck = append(stuck, stack)
		}
	}
	return strings.Join(stuck, "\n\n")
}

// stepFrame is the name of the function that calls the function of every step.
var stepFrame = runtime.FuncForPC(reflect.ValueOf((*task).call).Pointer()).Name()

// inStep reports whether the calling goroutine is inside a step's function, at any depth of its stack.
func inStep() bool {
	var some [128]uintptr
	pcs := some[:]
	n := runtime.Callers(2, pcs)
	for n == len(pcs) {
		pcs = make([]uintptr, 4*len(pcs))
		n = runtime.Callers(2, pcs)
	}
	for frames := runtime.CallersFrames(pcs[:n]); ; {
		frame, more := frames.Next()
		if frame.Function == stepFrame {
			return true
		}
		if !more {
			return false
		}
	}
}
