package durable

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// Generation is one execution of a run. A Generation begins when the run is started, repaired or continued as new, and ends
// when the run ends, is repaired or continues as new. A run that was never repaired and never continued as new has one
// Generation.
type Generation struct {
	Number   int // the number of the generation, from 1
	Status   Status
	Workflow string
	Queue    string
	Version  string // the version of the program that executed the generation last, or that started the run
	Input    jsontext.Value
	Output   jsontext.Value // nil unless the generation completed
	Err      *RunError      // nil unless the generation failed, was cancelled or expired
	EndedAt  time.Time      // zero if the generation has not ended, or was superseded before its end

	// Verb, Actor, Reason and From describe the repair or the continuation that began the generation. All four are zero for the
	// first generation. StartedAt is the time at which the generation began.
	Verb      Verb
	Actor     string
	Reason    string
	From      string
	StartedAt time.Time
	Kept      int      // the number of checkpoints that the generation keeps from the previous generation
	Dropped   []string // the calls of the previous generation that the generation makes again, at most 1,000 of them
	Corrected []string // the calls whose values the repair has set, at most 1,000 of them
}

// Generations returns the generations of the run with the given ID, the oldest first, and [ErrNotFound] if there is no such
// run. The last generation in the result is the current one. The result lacks the generations that [Retention] has deleted. If
// generations are missing, the fields of the first remaining generation do not describe the repair that began it.
// [Engine.History] with [InGeneration] returns the checkpoints of an older generation. [Engine.LatestGenerations] returns the
// generations in pages.
func (e *Engine) Generations(ctx context.Context, id string) ([]Generation, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("read the generations of run %q: %w", id, err)
	}
	row, before, err := e.inner.Generations(ctx, id, store.GenerationsQuery{Payloads: store.AllPayloads})
	if err != nil {
		return nil, err
	}
	all, next := supersededGenerations(row, before)
	next.setRunFields(row)
	return append(all, next), nil
}

// maxGenerationBytes is how many bytes of payloads, as they are stored, a page of superseded generations has before it ends early.
const maxGenerationBytes = 4 << 20

// GenerationPage is one page of the generations of a run.
type GenerationPage struct {
	Generations []Generation
	Next        string // the cursor of the next page; empty on the last page
}

// LatestGenerations returns a page of the generations of the run with the given ID, the newest first, and [ErrNotFound] if
// there is no such run. Use LatestGenerations for runs that may have continued as new many thousand times. Set Page.Cursor to
// the GenerationPage.Next of the previous page, or leave it empty to get the newest generations. The generations have the same
// fields as in the result of [Engine.Generations]. If the inputs and outputs of the generations have more than 4 MiB, a page
// has fewer generations than Page.Limit, and GenerationPage.Next is not empty.
//
// LatestGenerations returns [ErrInvalidCursor] for a text that is no cursor, and [ErrInvalidConfig] for a limit that is not from
// 0 to 1000.
func (e *Engine) LatestGenerations(ctx context.Context, id string, p Page) (GenerationPage, error) {
	if err := e.checkUsable(ctx); err != nil {
		return GenerationPage{}, fmt.Errorf("read the generations of run %q: %w", id, err)
	}
	limit, err := p.entryLimit()
	if err != nil {
		return GenerationPage{}, err
	}
	q := store.GenerationsQuery{Limit: limit, MaxBytes: maxGenerationBytes, Payloads: store.AllPayloads} // and the present one, or the one that tells how the oldest of the page began
	if p.Cursor != "" {
		before, err := strconv.ParseInt(p.Cursor, 10, 32)
		if err != nil || before < 1 || strconv.FormatInt(before, 10) != p.Cursor {
			return GenerationPage{}, fmt.Errorf("%w: %.40q: pass the Next of a GenerationPage", ErrInvalidCursor, p.Cursor)
		}
		q.BeforeNumber, q.Limit = int32(before), limit+1
	}
	row, before, err := e.inner.Generations(ctx, id, q)
	if err != nil {
		return GenerationPage{}, err
	}
	all, present := supersededGenerations(row, before)
	if p.Cursor == "" {
		present.setRunFields(row)
		all = append(all, present)
	}
	var page GenerationPage
	more := len(all) - limit
	if more <= 0 && len(before) < q.Limit && reachesMaxGenerationBytes(before) { // the store may have left out older ones, of which the oldest here tells how it began
		more = 1
	}
	if more > 0 {
		all = all[more:]
		page.Next = strconv.Itoa(all[0].Number)
	}
	slices.Reverse(all)
	page.Generations = all
	return page, nil
}

// reachesMaxGenerationBytes reports whether the store leaves out the generation before these, by [store.GenerationsQuery.MaxBytes].
func reachesMaxGenerationBytes(before []store.SupersededGeneration) bool {
	total := 0
	for i := 1; i < len(before); i++ {
		total += before[i].StoredBytes
	}
	return total >= maxGenerationBytes
}

// supersededGenerations converts superseded generations of a run, the oldest first. next is the generation after them, without the fields
// that setRunFields sets.
func supersededGenerations(row *store.Run, before []store.SupersededGeneration) (all []Generation, next Generation) {
	all = make([]Generation, 0, len(before)+1)
	next = Generation{Number: 1, StartedAt: row.CreatedAt}
	for i := range before {
		g := &before[i]
		run := runAtGeneration(row, g)
		if next.Number = int(g.Number); i == 0 && g.Number > 1 {
			next.StartedAt = time.Time{} // the generation before it was deleted
		}
		next.setRunFields(&run)
		all = append(all, next)
		detail := record.DecodeRepairDetail(g.Detail)
		next = Generation{
			Number: int(g.Number) + 1, Verb: Verb(g.Verb), Actor: g.Actor, Reason: g.Reason, From: g.FromStep, StartedAt: g.At, Kept: detail.Kept, Dropped: detail.Dropped,
			Corrected: detail.Corrected,
		}
	}
	return all, next
}

// setRunFields sets the fields that describe the run in this generation, such as its status and its input.
func (g *Generation) setRunFields(r *store.Run) {
	g.Status, g.Workflow, g.Queue, g.Version, g.EndedAt = Status(r.Status.String()), r.Workflow, r.Queue, r.Version, r.EndedAt
	g.Input, g.Output = payload.Shown(r.Input), payload.Shown(r.Output)
	if len(r.Error) > 0 {
		g.Err = newRunError(r)
	}
}

// runAtGeneration returns the run as it was in a superseded generation. row is the run as it is now.
func runAtGeneration(row *store.Run, g *store.SupersededGeneration) store.Run {
	run := g.Run
	run.Name, run.Parent, run.Detached = row.Name, row.Parent, row.Detached
	return run
}

// HistoryOption configures [Engine.History].
type HistoryOption func(*historyOptions)

type historyOptions struct {
	givenOptions
	generation int // zero: the newest
}

// InGeneration makes History return the checkpoints of the generation with the given number; see [Generation].
func InGeneration(number int) HistoryOption {
	return func(o *historyOptions) {
		o.addOptionOnce(1, "InGeneration")
		if o.generation = number; number < 1 {
			o.setFirstError(fmt.Errorf("%w: generation %d: they are counted from 1", ErrInvalidConfig, number))
		}
	}
}

// readRunAtGeneration returns the run as it was in a generation, with the given payloads, and the UUID of its checkpoints. It returns
// ErrNotFound if the run has no such generation, and row itself for the newest one.
func (e *Engine) readRunAtGeneration(ctx context.Context, row *store.Run, number int, payloads store.PayloadSelection) (*store.Run, store.UUID, error) {
	if number < math.MaxInt32 {
		before, err := e.inner.Store().SupersededGenerations(ctx, row.UUID, store.GenerationsQuery{BeforeNumber: int32(number) + 1, Limit: 1, Payloads: payloads})
		if err != nil {
			return nil, store.UUID{}, fmt.Errorf("read the generations of run %q: %w", row.NameOrUUID(), err)
		}
		if len(before) > 0 && int(before[0].Number) == number {
			g := &before[0]
			run := runAtGeneration(row, g)
			if run.Status == store.Superseded {
				run.EndedAt = g.At
			}
			return &run, g.ArchiveID, nil
		}
	}
	newest, err := e.inner.Store().SupersededGenerations(ctx, row.UUID, store.GenerationsQuery{Limit: 1})
	if err != nil {
		return nil, store.UUID{}, fmt.Errorf("read the generations of run %q: %w", row.NameOrUUID(), err)
	}
	present := int(store.CurrentGeneration(newest))
	if number == present {
		return row, row.UUID, nil
	}
	return nil, store.UUID{}, fmt.Errorf("%w: run %q has the generation %d, and none with the number %d: it never was, or was deleted", ErrNotFound, row.NameOrUUID(), present, number)
}
