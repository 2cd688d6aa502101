package engine

import (
	"math"
	"testing"
	"time"
)

// Even with the longest ParkAfter, a function whose run is suspended gets time to return.
func TestTheLongestParkAfterLeavesTimeToReturn(t *testing.T) {
	r := &run{e: &Engine{cfg: Config{ParkAfter: math.MaxInt64}}}
	if d := r.maxReturnTime(); d < time.Hour {
		t.Errorf("with the longest ParkAfter a function has %v to return", d)
	}
}
