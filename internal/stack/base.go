package stack

import "runtime"

// Base identifies the function with which the calling goroutine began. It is the same for all goroutines that the same go statement
// has started, and differs between two statements. It walks the stack, which takes about a microsecond.
func Base() uintptr {
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
