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

// requestView is what one request may see. Pages and the JSON read the engine through it only, so that nothing is shown that is hidden.
type requestView struct {
	*dashboard
	request      *http.Request
	at           time.Time       // what ages are relative to
	fixedVisible *durable.Filter // instead of what [Visible] returns for the request; nil: that
}

// newRequestView returns what the request may see, at the time of the database, with whose times it is compared.
func (s *dashboard) newRequestView(r *http.Request) *requestView {
	return &requestView{dashboard: s, request: r, at: s.now().Add(time.Duration(s.clockOffset.Load()))}
}

// measureClockOffset learns how far the database's clock is ahead of this process's. If the database cannot be read, the page gets the error.
func (s *dashboard) measureClockOffset(ctx context.Context) {
	if now, err := s.engine.Now(ctx); err == nil {
		s.clockOffset.Store(int64(now.Sub(s.now())))
	}
}

// Zone returns the zone of the times that people write without one, which is that of this process.
func (v *requestView) Zone() string { return v.at.Format("UTC-07:00") }

func (v *requestView) ctx() context.Context { return v.request.Context() }

// checkMayRead returns the error of a refusal to read what belongs to no single run.
func (v *requestView) checkMayRead(a Action) error {
	a.Verb = VerbRead
	_, err := v.authorizeAction(v.request, a)
	return err
}

// newRedactor returns what hides payloads of a run from this request.
func (v *requestView) newRedactor(run *durable.RunInfo) *redactor {
	_, err := v.authorizeAction(v.request, newRunAction(VerbReadPayloads, run))
	return &redactor{v.redact, run.Workflow, err == nil}
}

// visibleRun is a run that the request may read.
type visibleRun struct {
	*durable.RunInfo
	redactor *redactor
	tags     map[string]string // as they are; RunInfo has them redacted
}

// newAction returns an action on the run for [Authorize], which decides by the tags as they are.
func (s *visibleRun) newAction(verb Verb) Action {
	a := newRunAction(verb, s.RunInfo)
	a.Tags = s.tags
	return a
}

// findRun returns a run with what the request may see of it.
func (v *requestView) findRun(id string) (*visibleRun, error) {
	if id == "" {
		return nil, &statusError{http.StatusBadRequest, "The address names no run: it ends with ?id= and the run's ID or UUID."}
	}
	run, err := readOncePerReloadRound(v, "run "+id, func(ctx context.Context) (*durable.RunInfo, error) { return v.engine.Get(ctx, id) })
	if err != nil {
		if refused := v.checkMayRead(Action{Run: id}); refused != nil { // those who may read nothing do not learn which runs exist
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
	if v.hasLimitedVisibility() && !page.SearchedTo.IsZero() && page.Next != "" { // the search has stopped at any run
		page.Next = v.cursors.encrypt(lastVisible, page.Next)
	}
	if err != nil {
		return page, err
	}
	return page, v.hideInvisibleParents(page.Runs)
}

// listRunsCached is Engine.List for a filter that has the conditions of [Visible].
func (v *requestView) listRunsCached(f durable.Filter, p durable.Page) (durable.RunPage, error) {
	page, err := readOncePerReloadRound(v, cacheKey("list", f, p), func(ctx context.Context) (durable.RunPage, error) { return v.engine.List(ctx, f, p) })
	page.Runs = slices.Clone(page.Runs)
	return page, err
}

// redactListedRun redacts a run of a list or a tree, which has no payloads.
func (v *requestView) redactListedRun(r *durable.RunInfo) {
	(&redactor{redact: v.redact, workflow: r.Workflow}).redactRun(r)
}

// What the JSON of a whole history has at most: calls, and bytes of their results. A process has it in memory several times.
const (
	mostHistoryCalls = 1000
	mostHistoryBytes = 16 << 20
)

// redactedHistory returns a history without what the request may not see, unless the history is too large.
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

// redactedHistoryPage returns a part of a history. An output that is too long for the page has its size only.
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

// treeCounts counts the runs of a tree, unless some of them may be hidden.
func (v *requestView) treeCounts(run *visibleRun) (durable.TreeCounts, error) {
	if v.hasLimitedVisibility() {
		return durable.TreeCounts{}, errCountsHidden
	}
	return v.engine.TreeCounts(v.ctx(), run.RunID)
}
