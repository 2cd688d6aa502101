package engine

import (
	"math"
	"slices"
	"testing"

	"github.com/seed8ec063be/durable/internal/store"
)

// Calls of the scope's own goroutine are missing if they are not made. A process that dies loses the numbers of the calls that it had begun
// and not recorded, so a history has gaps. They excuse nothing.
func TestMissingCallNames(t *testing.T) {
	r := &run{e: &Engine{}}
	r.usedNames = map[string]uintptr{"begin": 1}
	r.addRows([]store.Step{
		{Name: "ship", Seq: store.EncodeSeq(6, true)},
		{Name: "begin", Seq: store.EncodeSeq(1, true)},
		{Name: "charge", Seq: store.EncodeSeq(3, true)},
		{Name: "of another goroutine, or behind a repair", Seq: store.EncodeSeq(5, false)},
		{Name: "undo", Kind: store.KindCompensation, Seq: store.EncodeSeq(7, true)},
		{Name: "branch\x1fstep", Seq: store.EncodeSeq(2, true)},
	})
	if got := r.missingCallNames("", math.MaxInt32); !slices.Equal(got, []string{"charge", "ship"}) {
		t.Errorf("missing are %q", got)
	}
	if got := r.missingCallNames("branch\x1f", math.MaxInt32); !slices.Equal(got, []string{"branch/step"}) {
		t.Errorf("missing in the branch are %q", got)
	}
}
