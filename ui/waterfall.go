package ui

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// waterfall is the drawing of a history: a row for each call, with its attempts, backoffs and waits on an axis of time. Long
// stretches in which no step was executed are folded.
type waterfall struct {
	Rows    []waterfallRow
	Ticks   []string // offsets from the start of the run, at equal distances
	Folds   []float64
	Density []densityBucket // the density of all calls, if there are more than the page shows
	Areas   []densityPageLink
	Run     waterfallRow   // the run itself: how long it waited to begin, whether it is paused, and which worker lost it
	Taken   []waterfallBar // when another worker took the run over
	Total   int            // calls
	From    int            // the index of the first row
	Prev    int            // the index of the previous page; -1 if this is the first page
	Next    int            // the index of the next page; 0 if this is the last page
}

// width is the width of the drawing, in units of the SVG's viewBox.
const width = 1000

// rowsPerPage is the largest number of rows on a page. A history can have many thousand calls.
const rowsPerPage = 100

type waterfallRow struct {
	durable.SizedCheckpoint
	Bars     []waterfallBar
	Took     string
	Result   string // the error or the value, in one line
	Repairs  []string
	Open     bool // the call has no outcome yet
	WaitKind bool
}

// waterfallBar is a rectangle of a row.
type waterfallBar struct {
	X, W  float64
	Class string
	Title string
}

// timeAxis maps times to positions.
type timeAxis struct {
	times     []time.Time
	positions []float64 // of the times
	folds     []float64 // the middles of folded stretches
}

// X returns the position of a time.
func (a *timeAxis) X(t time.Time) float64 {
	i, found := slices.BinarySearchFunc(a.times, t, time.Time.Compare)
	switch {
	case found:
		return a.positions[i]
	case i == 0:
		return 0
	case i == len(a.times):
		return width
	}
	share := float64(t.Sub(a.times[i-1])) / float64(a.times[i].Sub(a.times[i-1]))
	return a.positions[i-1] + share*(a.positions[i]-a.positions[i-1])
}

// timeAt returns the time at a position.
func (a *timeAxis) timeAt(x float64) time.Time {
	i, _ := slices.BinarySearch(a.positions, x)
	switch {
	case i == 0:
		return a.times[0]
	case i >= len(a.positions):
		return a.times[len(a.times)-1]
	case a.positions[i] == a.positions[i-1]:
		return a.times[i]
	}
	share := (x - a.positions[i-1]) / (a.positions[i] - a.positions[i-1])
	return a.times[i-1].Add(time.Duration(share * float64(a.times[i].Sub(a.times[i-1]))))
}

// timeSpan is a stretch of time.
type timeSpan struct{ from, to time.Time }

// newTimeAxis returns the axis of the time between two times. Stretches that are outside of all busy spans are folded if they take
// more than a twelfth of the rest.
func newTimeAxis(from, to time.Time, busy []timeSpan) *timeAxis {
	if !to.After(from) {
		to = from.Add(time.Millisecond)
	}
	slices.SortFunc(busy, func(a, b timeSpan) int { return a.from.Compare(b.from) })
	times, idle := []time.Time{from}, []bool{}
	for _, s := range busy {
		end := times[len(times)-1]
		if s.from.After(end) {
			times, idle = append(times, s.from), append(idle, true)
			end = s.from
		}
		if s.to.After(end) {
			times, idle = append(times, s.to), append(idle, false)
		}
	}
	if end := times[len(times)-1]; to.After(end) {
		times, idle = append(times, to), append(idle, true)
	}
	var active time.Duration
	for i := range idle {
		if !idle[i] {
			active += times[i+1].Sub(times[i])
		}
	}
	longest := max(active/3, time.Millisecond) // the longest idle stretch that is drawn to scale
	weights, sum := make([]float64, len(idle)), 0.0
	for i := range idle {
		d := times[i+1].Sub(times[i])
		if idle[i] && active > 0 && d > longest {
			d = longest
		}
		weights[i] = float64(d)
		sum += weights[i]
	}
	a := &timeAxis{times: times, positions: []float64{0}}
	for i, w := range weights {
		x := a.positions[i] + w/sum*width
		if idle[i] && w < float64(times[i+1].Sub(times[i])) {
			a.folds = append(a.folds, roundToTenth((a.positions[i]+x)/2))
		}
		a.positions = append(a.positions, x)
	}
	return a
}

// waitingKinds are the kinds of calls that execute no code of the user while they are open.
var waitingKinds = map[durable.Kind]bool{durable.KindSleep: true, durable.KindReceive: true, durable.KindChild: true, durable.KindChoice: true, durable.KindMap: true, durable.KindGraph: true}

// newWaterfall draws a page of a history, which begins at the call with the index from. The attempts of calls on other pages are not known, so
// such a call is drawn as busy from its first attempt to its last.
func newWaterfall(r *durable.RunInfo, page *durable.HistoryPage, from int, now time.Time) *waterfall {
	history := page.Outline
	end := r.EndedAt
	if end.IsZero() {
		end = now
	}
	var busy []timeSpan
	for i := range history {
		c := &history[i]
		if at := i - from; at >= 0 && at < len(page.Calls) && page.Calls[at].Name == c.Name {
			c = &page.Calls[at].Checkpoint
		}
		if end.Before(c.EndedAt) {
			end = c.EndedAt // clocks differ
		}
		if waitingKinds[c.Kind] {
			busy = append(busy, timeSpan{c.StartedAt, c.StartedAt.Add(time.Millisecond)})
			continue
		}
		for _, s := range attemptBars(c, now, r.LastLeaseLoss) {
			busy = append(busy, s.timeSpan)
		}
	}
	start := r.CreatedAt
	if len(history) > 0 && history[0].StartedAt.Before(start) {
		start = history[0].StartedAt
	}
	a := newTimeAxis(start, end, busy)
	w := &waterfall{Total: len(history), Prev: -1, Folds: a.folds}
	for i := range 5 {
		w.Ticks = append(w.Ticks, wording.RoughDuration(a.timeAt(width*float64(i)/4).Sub(start)))
	}
	if len(history) > rowsPerPage {
		w.Density, w.Areas = callDensity(history, a), newDensityPageLinks(history, a, from)
	}
	if w.From = from; from > 0 {
		w.Prev = from - rowsPerPage
	}
	if from+rowsPerPage < len(history) {
		w.Next = from + rowsPerPage
	}
	w.addRun(r, a, end)
	for _, c := range page.Calls {
		w.Rows = append(w.Rows, newWaterfallRow(c, a, end, now, r))
	}
	return w
}

// attemptBar is the drawing of one attempt, or of the wait between two.
type attemptBar struct {
	timeSpan
	class, title string
}

// addRun draws the run itself.
func (w *waterfall) addRun(r *durable.RunInfo, a *timeAxis, end time.Time) {
	draw := func(from, to time.Time, class, title string) {
		x := roundToTenth(a.X(from))
		w.Run.Bars = append(w.Run.Bars, waterfallBar{min(x, width-3), max(roundToTenth(a.X(to))-x, 3), class, wording.Escape(title)})
	}
	began := r.StartedAt
	if began.IsZero() {
		began = end
	}
	var notes []string
	if waited := began.Sub(r.CreatedAt); waited > 0 {
		draw(r.CreatedAt, began, "queued", "waited to begin")
		notes = append(notes, "waited "+wording.RoughDuration(waited)+" to begin")
	}
	if !r.StartedAt.IsZero() {
		draw(r.StartedAt, end, "life", "")
		if r.Epoch > 1 {
			notes = append(notes, fmt.Sprintf("claimed %s times", withThousandsCommas(r.Epoch)))
		}
	}
	if lost := r.LastLeaseLoss; lost != nil {
		title := "taken over from worker " + lost.Worker + ", which died or lost the run"
		w.Taken = append(w.Taken, waterfallBar{roundToTenth(min(a.X(lost.At), width-3)), 3, "taken", wording.Escape(title)})
		notes = append(notes, title)
	}
	if r.Status == durable.StatusPaused && !r.PausedAt.IsZero() {
		draw(r.PausedAt, end, "paused", "is paused")
		notes = append(notes, "is paused")
	}
	w.Run.Took = wording.DurationBetween(r.CreatedAt, r.EndedAt)
	w.Run.Result = wording.Escape(strings.Join(notes, "; "))
}

// attemptBars returns bars for the known attempts of a step, and for the waits between them. lost is the last time that a worker lost the
// run.
func attemptBars(c *durable.Checkpoint, now time.Time, lost *durable.LeaseLoss) (all []attemptBar) {
	at := c.StartedAt
	add := func(to time.Time, class, title string) {
		if to.After(at) || class != string(c.Status) || len(all) == 0 { // an attempt that failed at once is drawn too
			all = append(all, attemptBar{timeSpan{at, to}, class, title})
			at = to
		}
	}
	for _, f := range []*durable.FailedAttempt{c.FirstFailure, c.LastFailure} {
		if f == nil || f.StartedAt.Before(at) {
			continue
		}
		if f.StartedAt.After(at) {
			class, title := "backoff", "waited for the next attempt"
			if n := len(all); n > 0 && all[n-1].class == "interrupted" {
				class, title = "interrupted", "its process had died or lost the run"
			}
			add(f.StartedAt, class, title)
		}
		end, title := f.EndedAt, "failed"
		if f.Interrupted {
			title = "interrupted"
		}
		if end.IsZero() {
			end = f.StartedAt.Add(time.Millisecond)
			if f.Interrupted && lost != nil && lost.Worker == f.WorkerID && lost.At.After(end) && (c.EndedAt.IsZero() || lost.At.Before(c.EndedAt)) {
				end = lost.At // nobody knows when the worker died before this time
			}
		}
		add(end, title, wording.Attempt(now, f))
		if next := f.NextAt; next.After(end) && f.Attempt < c.Attempts && !(c.EndedAt.IsZero() && next.After(now)) {
			add(next, "backoff", "waited for the next attempt")
		}
	}
	end := c.EndedAt
	if end.IsZero() {
		if c.Status == durable.CheckpointBackoff {
			add(now, "backoff", "waits for the next attempt")
			return all
		}
		end = now
	}
	add(end, string(c.Status), string(c.Status))
	return all
}

func newWaterfallRow(c durable.SizedCheckpoint, a *timeAxis, end, now time.Time, r *durable.RunInfo) waterfallRow {
	row := waterfallRow{SizedCheckpoint: c, Took: "", Open: c.EndedAt.IsZero(), WaitKind: waitingKinds[c.Kind]}
	attempts := attemptBars(&c.Checkpoint, end, r.LastLeaseLoss)
	if row.WaitKind && c.Status != durable.CheckpointFailed {
		class := "wait"
		if row.Open {
			class = "wait open"
		}
		to := c.EndedAt
		if row.Open {
			to = end
		}
		attempts = []attemptBar{{timeSpan{c.StartedAt, to}, class, string(c.Status)}}
	}
	for _, t := range attempts {
		x := roundToTenth(a.X(t.from))
		row.Bars = append(row.Bars, waterfallBar{min(x, width-3), max(roundToTenth(a.X(t.to))-x, 3), t.class, wording.Escape(t.title)})
	}
	switch {
	case !row.Open:
		row.Took = wording.DurationBetween(c.StartedAt, c.EndedAt)
	case r.EndedAt.IsZero():
		row.Took = wording.RoughDuration(max(0, now.Sub(c.StartedAt))) + "…"
	}
	switch {
	case c.Err != nil:
		row.Result = wording.Escape(c.Err.Message)
	case len(c.Output) > 0:
		row.Result = wording.Escape(string(c.Output))
	case c.OutputSize > 0:
		row.Result = withThousandsCommas(c.OutputSize) + " bytes"
	}
	row.Result = truncateText(row.Result, 160)
	row.Repairs = possibleRepairs(&c.Checkpoint)
	return row
}

// possibleRepairs returns the verbs that can repair a call.
func possibleRepairs(c *durable.Checkpoint) []string {
	switch {
	case c.Kind != durable.KindStep && c.Kind != durable.KindTx && !waitingKinds[c.Kind]:
		return nil
	case c.Status == durable.CheckpointCompleted && !waitingKinds[c.Kind]:
		return []string{"override", "rerun"}
	case c.Status != durable.CheckpointCompleted && c.Kind != durable.KindMap && c.Kind != durable.KindChoice && c.Kind != durable.KindGraph:
		return []string{"skip"}
	}
	return nil
}

func roundToTenth(x float64) float64 { return math.Round(x*10) / 10 }

// truncateText returns at most n characters of a text.
func truncateText(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return string(runes[:n]) + "…"
}
