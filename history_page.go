package durable

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/seed8ec063be/durable/internal/history"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/repair"
	"github.com/seed8ec063be/durable/internal/store"
)

// HistoryPart selects which calls of a history [Engine.HistoryPage] returns in full.
type HistoryPart struct {
	From      int    // the index in HistoryPage.Outline of the first call to return
	Limit     int    // the largest number of calls to return; zero means 100, the maximum is 1000
	MaxOutput int    // outputs that are larger than MaxOutput bytes are left out; zero means 256; a negative MaxOutput leaves out all outputs that the Outline does not have
	Call      string // if not empty, select only the call with this name, with its output of any size, and ignore the other fields
}

// HistoryPage has some calls of a run's history in full, and an outline of the whole history.
type HistoryPage struct {
	// Outline has all calls of the run, in the order in which they began, without Err, FirstFailure and LastFailure. Only the
	// calls of choices, Maps and graphs have their outputs in the Outline.
	Outline []Checkpoint
	Calls   []SizedCheckpoint // the calls that the HistoryPart selects
}

// SizedCheckpoint is a checkpoint whose Output may have been left out.
type SizedCheckpoint struct {
	Checkpoint
	OutputSize int // the size of the stored output in bytes; zero if the call has no output
}

const (
	defaultHistoryLimit = 100
	defaultMaxOutput    = 256
)

// HistoryPage returns a part of the history of the run with the given ID, and an outline of the whole history. Unlike
// [Engine.History], HistoryPage reads only the payloads of the selected part, and only short outputs, so that HistoryPage also
// suits histories of many thousand calls. The option [InGeneration] selects an older generation of the run.
//
// HistoryPage returns [ErrNotFound] if there is no such run, [ErrNoStep] if the run has no call with the name part.Call, and
// [ErrInvalidConfig] if part.From is negative, or part.Limit is negative or greater than 1000.
func (e *Engine) HistoryPage(ctx context.Context, id string, part HistoryPart, opts ...HistoryOption) (*HistoryPage, error) {
	var o historyOptions
	o.setFirstError(applyOptions(opts, &o))
	if part.From < 0 || part.Limit < 0 || part.Limit > maxPageLimit {
		o.setFirstError(fmt.Errorf("%w: a part of a history from %d with the limit %d: use 0 or more, and 1 to %d", ErrInvalidConfig, part.From, part.Limit, maxPageLimit))
	}
	if o.err != nil {
		return nil, fmt.Errorf("read the history of run %q: %w", id, o.err)
	}
	run, archive, steps, view, err := e.readHistoryOrOutline(ctx, id, o.generation, true)
	if err != nil {
		return nil, err
	}
	page := &HistoryPage{Outline: make([]Checkpoint, len(steps))}
	for i := range steps {
		page.Outline[i] = newCheckpoint(&steps[i], &view)
	}
	from := min(part.From, len(steps))
	names, maxOutput := make([]string, 0, defaultHistoryLimit), firstNonZero(part.MaxOutput, defaultMaxOutput)
	for _, s := range steps[from:min(from+firstNonZero(part.Limit, defaultHistoryLimit), len(steps))] {
		names = append(names, s.Name)
	}
	if part.Call != "" {
		names, maxOutput = []string{naming.ParseDisplay(part.Call)}, math.MaxInt32
		if !slices.ContainsFunc(steps, func(s store.Step) bool { return s.Name == names[0] }) { // perhaps a text that the database refuses
			return nil, fmt.Errorf("read the history of run %q: %w", id, repair.NoStepError(names[0], steps))
		}
	}
	if len(names) == 0 {
		return page, nil
	}
	calls, err := e.inner.GenerationCheckpoints(ctx, archive, run.UUID, names, maxOutput)
	if err != nil {
		return nil, fmt.Errorf("read the history of run %q: %w", id, err)
	}
	if part.Call != "" && len(calls) == 0 {
		return nil, fmt.Errorf("read the history of run %q: %w", id, repair.NoStepError(names[0], steps))
	}
	for i := range calls {
		page.Calls = append(page.Calls, newSizedCheckpoint(&calls[i], steps, &view))
	}
	return page, nil
}

// newSizedCheckpoint converts a row that has a payload.
func newSizedCheckpoint(s *store.SizedStep, outline []store.Step, view *history.View) SizedCheckpoint {
	row := s.Step
	if i := slices.IndexFunc(outline, func(o store.Step) bool { return o.Name == row.Name }); row.Output == nil && i >= 0 {
		row.Output = outline[i].Output // the status of a Map follows from it
	}
	return SizedCheckpoint{newCheckpoint(&row, view), s.OutputSize}
}
