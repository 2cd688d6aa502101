package ui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/seed8ec063be/durable"
)

// requestView reads the engine for one request, and returns only what this request may see. Pages and the JSON read the engine only through
// a requestView, so that nothing hidden is shown.
type requestView struct {
	*dashboard
	request      *http.Request
	at           time.Time       // the time to which ages are relative
	fixedVisible *durable.Filter // used instead of the filter that [Visible] returns for the request; nil if it is not set
}

// newRequestView returns the view of a request. Its time is that of the database, because it is compared with times in the database.
func (s *dashboard) newRequestView(r *http.Request) *requestView {
	return &requestView{dashboard: s, request: r, at: s.now().Add(time.Duration(s.clockOffset.Load()))}
}

// measureClockOffset learns how far the database's clock is ahead of this process's. If the database cannot be read, the page gets the error.
func (s *dashboard) measureClockOffset(ctx context.Context) {
	if now, err := s.engine.Now(ctx); err == nil {
		s.clockOffset.Store(int64(now.Sub(s.now())))
	}
}

// Zone returns the time zone of times that people write without a zone. It is the time zone of this process.
func (v *requestView) Zone() string { return v.at.Format("UTC-07:00") }

func (v *requestView) ctx() context.Context { return v.request.Context() }

// checkMayRead returns an error if the request may not make a read that belongs to no single run.
func (v *requestView) checkMayRead(a Action) error {
	a.Verb = VerbRead
	_, err := v.authorizeAction(v.request, a)
	return err
}

// newRedactor returns the redactor that hides payloads and texts of a run from this request.
func (v *requestView) newRedactor(run *durable.RunInfo) *redactor {
	_, err := v.authorizeAction(v.request, newRunAction(VerbReadPayloads, run))
	return &redactor{v.redact, run.Workflow, err == nil}
}

// visibleRun is a run that the request may read.
type visibleRun struct {
	*durable.RunInfo
	redactor *redactor
	tags     map[string]string // without redaction; the tags in RunInfo are redacted
}

// newAction returns an action on the run for [Authorize], which gets the tags without redaction.
func (s *visibleRun) newAction(verb Verb) Action {
	a := newRunAction(verb, s.RunInfo)
	a.Tags = s.tags
	return a
}

// findRun returns a run with the fields that the request may see.
func (v *requestView) findRun(id string) (*visibleRun, error) {
	if id == "" {
		return nil, &statusError{http.StatusBadRequest, "The address names no run: it ends with ?id= and the run's ID or UUID."}
	}
	run, err := readOncePerReloadRound(v, "run "+id, func(ctx context.Context) (*durable.RunInfo, error) { return v.engine.Get(ctx, id) })
	if err != nil {
		if refused := v.checkMayRead(Action{Run: id}); refused != nil { // a request that may read nothing does not learn which runs exist
			return nil, refused
		}
		if v.hasLimitedVisibility() && errors.Is(err, durable.ErrNotFound) {
			return nil, errNoRun // as for a run that exists and is hidden
		}
		return nil, err
	}
	own := *run
	run, own.Tags, own.OpenCalls = &own, maps.Clone(own.Tags), slices.Clone(own.OpenCalls)
	if err := v.hideInvisibleReferences(run); err != nil { // before Authorize, whose refusal may name the run
		return nil, err
	}
	if err := v.checkMayRead(newRunAction(VerbRead, run)); err != nil {
		return nil, err
	}
	found := &visibleRun{run, v.newRedactor(run), maps.Clone(run.Tags)}
	found.redactor.redactRun(run)
	return found, nil
}

// listRuns returns a page of the runs that match the filter and are visible.
func (v *requestView) listRuns(f durable.Filter, p durable.Page) (durable.RunPage, error) {
	if err := v.checkMayRead(Action{Workflow: f.Workflow, Queue: f.Queue}); err != nil {
		return durable.RunPage{}, err
	}
	f, second := v.splitTagFilter(f)
	f, some := v.restrictToVisible(f)
	if !some {
		return durable.RunPage{}, nil
	}
	lastVisible := p.Cursor
	if v.hasLimitedVisibility() {
		lastVisible, p.Cursor = v.cursors.decrypt(p.Cursor)
	}
	read := v.listRunsCached
	if second != nil {
		read = func(f durable.Filter, p durable.Page) (durable.RunPage, error) {
			return v.listRunsByTwoTags(f, *second, p)
		}
	}
	page, err := read(f, p)
	for i := range page.Runs {
		v.redactListedRun(&page.Runs[i])
		lastVisible = page.Runs[i].RunID
	}
	if v.hasLimitedVisibility() && !page.SearchedTo.IsZero() && page.Next != "" { // the search may have stopped at a hidden run
		page.Next = v.cursors.encrypt(lastVisible, page.Next)
	}
	if err != nil {
		return page, err
	}
	return page, v.hideInvisibleParents(page.Runs)
}

// listRunsCached does what Engine.List does, with a cache, for a filter that has the conditions of [Visible].
func (v *requestView) listRunsCached(f durable.Filter, p durable.Page) (durable.RunPage, error) {
	page, err := readOncePerReloadRound(v, cacheKey("list", f, p), func(ctx context.Context) (durable.RunPage, error) { return v.engine.List(ctx, f, p) })
	page.Runs = slices.Clone(page.Runs)
	return page, err
}

// redactListedRun redacts a run of a list or a tree, which has no payloads.
func (v *requestView) redactListedRun(r *durable.RunInfo) {
	(&redactor{redact: v.redact, workflow: r.Workflow}).redactRun(r)
}

// The bounds of the JSON of a whole history: calls, and bytes of their results. A process may hold such JSON in memory several times.
const (
	mostHistoryCalls = 1000
	mostHistoryBytes = 16 << 20
)

// redactedHistory returns a history without the payloads and texts that the request may not see, or an error if the history is too large.
func (v *requestView) redactedHistory(run *visibleRun, opts ...durable.HistoryOption) ([]durable.Checkpoint, error) {
	sizes, err := v.engine.HistoryPage(v.ctx(), run.RunID, durable.HistoryPart{Limit: mostHistoryCalls, MaxOutput: -1}, opts...)
	if err != nil {
		return nil, err
	}
	total := 0
	for i := range sizes.Calls {
		total += sizes.Calls[i].OutputSize
	}
	if len(sizes.Outline) > mostHistoryCalls || total > mostHistoryBytes {
		return nil, &statusError{http.StatusRequestEntityTooLarge, fmt.Sprintf("The history has %d calls, and the results of the first %d have %d bytes: read it in parts from history_page.", len(sizes.Outline), len(sizes.Calls), total)}
	}
	all, err := v.engine.History(v.ctx(), run.RunID, opts...)
	for i := range all {
		v.hideChildUUID(&all[i])
		run.redactor.redactCheckpoint(&all[i])
	}
	return all, err
}

// redactedHistoryPage returns a part of a history. For an output that is too long for the page, it returns only the size.
func (v *requestView) redactedHistoryPage(run *visibleRun, part durable.HistoryPart, opts ...durable.HistoryOption) (*durable.HistoryPage, error) {
	page, err := readOncePerReloadRound(v, cacheKey("history", run.RunID, part, v.request.URL.Query().Get("generation")), func(ctx context.Context) (*durable.HistoryPage, error) {
		return v.engine.HistoryPage(ctx, run.RunID, part, opts...)
	})
	if err != nil {
		return nil, err
	}
	own := &durable.HistoryPage{Outline: slices.Clone(page.Outline), Calls: slices.Clone(page.Calls)} // others may be shown the same page
	for i := range own.Outline {
		own.Outline[i].Output = nil
	}
	for i := range own.Calls {
		c := &own.Calls[i]
		v.hideChildUUID(&c.Checkpoint)
		if c.OutputSize > 0 && !run.redactor.showsPayloads {
			c.Output = hiddenPayload
		}
		run.redactor.redactCheckpoint(&c.Checkpoint)
	}
	return own, nil
}

// hideChildUUID removes the UUID of a child that may be hidden.
func (v *requestView) hideChildUUID(c *durable.Checkpoint) {
	if v.hasLimitedVisibility() && c.Kind == durable.KindChild && c.EndedAt.IsZero() {
		c.Output = nil
	}
}

// treeCounts counts the runs of a tree. It returns an error if some of them may be hidden.
func (v *requestView) treeCounts(run *visibleRun) (durable.TreeCounts, error) {
	if v.hasLimitedVisibility() {
		return durable.TreeCounts{}, errCountsHidden
	}
	return v.engine.TreeCounts(v.ctx(), run.RunID)
}
