package stack

import (
	"runtime"
	"strings"
	"sync"
	"testing"
)

//go:noinline
func marked(f func() bool) bool { return f() }

//go:noinline
func deep(n int, f func() bool) bool {
	if n == 0 {
		return f()
	}
	return deep(n-1, f) && n > 0
}

// TestInsideAtAnyDepth checks that Inside finds a caller far up the stack, and in no other goroutine.
func TestInsideAtAnyDepth(t *testing.T) {
	name := FunctionName(marked)
	inside := func() bool { return IsInside(name) }
	if inside() {
		t.Error("the test itself is inside the function")
	}
	for _, depth := range []int{0, 1, 127, 128, 600} {
		if !marked(func() bool { return deep(depth, inside) }) {
			t.Errorf("a call %d frames below the function is not inside it", depth)
		}
	}
	if marked(func() bool {
		var elsewhere bool
		var other sync.WaitGroup
		other.Go(func() { elsewhere = inside() })
		other.Wait()
		return elsewhere
	}) {
		t.Error("a goroutine that the function started is inside the function")
	}
}

// TestGoroutinesDiffer checks that a goroutine keeps its number, and that the dump shows the number.
func TestGoroutinesDiffer(t *testing.T) {
	own := GoroutineID()
	if again := GoroutineID(); own == "" || again != own {
		t.Errorf("the goroutine has the numbers %q and %q", own, again)
	}
	var other string
	var wait sync.WaitGroup
	wait.Go(func() { other = GoroutineID() })
	wait.Wait()
	if other == own {
		t.Errorf("two goroutines have the number %s", own)
	}
	for _, text := range All() {
		if strings.HasPrefix(text, "goroutine "+own+" ") {
			if !strings.Contains(text, "TestGoroutinesDiffer") {
				t.Errorf("the stack of this goroutine is %s", text)
			}
			return
		}
	}
	t.Error("the stacks of all goroutines lack this one")
}

// entryOfCaller returns FunctionEntryAt of the place that calls it.
//
//go:noinline
func entryOfCaller() uintptr {
	var pcs [1]uintptr
	runtime.Callers(2, pcs[:])
	return FunctionEntryAt(pcs[0])
}

func inlined() uintptr { return entryOfCaller() }

//go:noinline
func caller(f func() uintptr) (own, fromInlined, fromOther uintptr) {
	return entryOfCaller(), inlined(), f()
}

// TestEntryAt checks that a call site belongs to the function whose code it is in, and not to one that this function calls, or to a
// function literal in it.
func TestEntryAt(t *testing.T) {
	own, fromInlined, fromOther := caller(func() uintptr { return entryOfCaller() })
	if want := FunctionEntry(caller); own != want || fromInlined != want {
		t.Errorf("calls in the function have the entries %x and, if inlined, %x, want %x", own, fromInlined, want)
	}
	if fromOther == 0 || fromOther == FunctionEntry(caller) || fromOther == FunctionEntry(TestEntryAt) {
		t.Errorf("a call in a function literal has the entry %x", fromOther)
	}
	if FunctionEntryAt(0) != 0 {
		t.Error("no call site has an entry")
	}
}

// TestPosition checks that a position is a file without its folder, and a line.
func TestPosition(t *testing.T) {
	var pcs [1]uintptr
	runtime.Callers(1, pcs[:])
	if at := Position(pcs[0]); !strings.HasPrefix(at, "stack_test.go:") {
		t.Errorf("the position is %q", at)
	}
	if at := Position(0); at != "unknown position" {
		t.Errorf("the position of no program counter is %q", at)
	}
}
