package stack

import (
	"reflect"
	"runtime"
)

// FunctionEntry returns where the code of a function begins. Two closures of one function literal have the same one.
func FunctionEntry(f any) uintptr { return reflect.ValueOf(f).Pointer() }

// FunctionEntryAt returns where the code of the function begins that contains a return address. If the function was inlined, it is the one
// into which it was.
func FunctionEntryAt(pc uintptr) uintptr {
	if f := runtime.FuncForPC(pc - 1); f != nil {
		return f.Entry()
	}
	return 0
}

// BaseFunction identifies the function with which the calling goroutine began. It is the same for all goroutines that the same go statement
// has started, and differs between two statements. It walks the stack, which takes about a microsecond.
func BaseFunction() uintptr {
	var some [64]uintptr
	pcs := some[:]
	n := runtime.Callers(1, pcs)
	for n == len(pcs) {
		pcs = make([]uintptr, 4*len(pcs))
		n = runtime.Callers(1, pcs)
	}
	if n < 2 {
		return 0
	}
	return runtime.FuncForPC(pcs[n-2]).Entry() // the last one is runtime.goexit
}
