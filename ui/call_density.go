package ui

import (
	"fmt"
	"time"

	"github.com/seed8ec063be/durable"
)

type densityBucket struct {
	X, W, Y, H float64
	Class      string
}

// densityPageLink is a part of the density row, with a link to the calls that began in it.
type densityPageLink struct {
	X, W  float64
	From  int // the first call of its page
	Here  bool
	Label string
}

// callDensity returns how many calls began in each stretch of the axis.
func callDensity(history []durable.Checkpoint, a *timeAxis) (buckets []densityBucket) {
	const number = 200
	var calls, failed [number]int
	most := 1
	for i := range history {
		n := min(int(a.X(history[i].StartedAt)/width*number), number-1)
		calls[n]++
		if history[i].Status == durable.CheckpointFailed {
			failed[n]++
		}
		most = max(most, calls[n])
	}
	const height, w = 40.0, float64(width) / number
	add := func(i int, share float64, class string) {
		if h := roundToTenth(height * share / float64(most)); h > 0 {
			buckets = append(buckets, densityBucket{roundToTenth(float64(i) * w), roundToTenth(w - 0.5), roundToTenth(height - h), h, class})
		}
	}
	for i := range number {
		add(i, float64(calls[i]), "completed")
		add(i, float64(failed[i]), "failed")
	}
	return buckets
}

// minAreaWidth is the width of the narrowest area: there are at most forty, however many pages the history has.
const minAreaWidth = width / 40

// newDensityPageLinks divides the axis into areas, each of which leads to the page of the first call that began in it. From is the page that is shown.
func newDensityPageLinks(history []durable.Checkpoint, a *timeAxis, from int) (all []densityPageLink) {
	for i := range history {
		x := roundToTenth(min(a.X(history[i].StartedAt), width-minAreaWidth))
		page := i / rowsPerPage * rowsPerPage
		if n := len(all); n == 0 || page > all[n-1].From && x >= all[n-1].X+minAreaWidth {
			all = append(all, densityPageLink{X: x, From: page})
		}
	}
	for i := range all {
		end, last := float64(width), len(history)
		if i+1 < len(all) {
			end, last = all[i+1].X, all[i+1].From
		}
		all[i].W = roundToTenth(end - all[i].X)
		all[i].Here = from >= all[i].From && from < last
		all[i].Label = fmt.Sprintf("Calls %s to %s, from %s", withThousandsCommas(all[i].From+1), withThousandsCommas(last), a.timeAt(all[i].X).UTC().Format(time.TimeOnly))
	}
	return all
}
