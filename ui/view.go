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

// view is what one request may see. Pages and the JSON read the engine through it only, so that nothing is shown that is hidden.
type view struct {
	*server
	request *http.Request
	at      time.Time // what ages are relative to
}

// view returns what the request may see, at the time of the database, with whose times it is compared.
func (s *server) view(r *http.Request) *view {
	return &view{s, r, s.now().Add(time.Duration(s.clockOffset.Load()))}
}

// measureClock learns how far the database's clock is ahead of this process's. If the database cannot be read, the page gets the error.
func (s *server) measureClock(ctx context.Context) {
	if now, err := s.engine.Now(ctx); err == nil {
		s.clockOffset.Store(int64(now.Sub(s.now())))
	}
}

func (v *view) ctx() context.Context { return v.request.Context() }

// mayRead returns the error of a refusal to read what belongs to no single run.
func (v *view) mayRead(a Action) error {
	a.Verb = VerbRead
	_, err := v.permit(v.request, a)
	return err
}

// redactorOf returns what hides payloads of a run from this request.
func (v *view) redactorOf(run *durable.RunInfo) *redactor {
	_, err := v.permit(v.request, actionOf(VerbReadPayloads, run))
	return &redactor{v.redact, run.Workflow, err == nil}
}

// seen is a run that the request may read.
type seen struct {
	*durable.RunInfo
	redactor *redactor
	tags     map[string]string // as they are; RunInfo has them redacted
}

// action returns an action on the run for [Authorize], which decides by the tags as they are.
func (s *seen) action(verb Verb) Action {
	a := actionOf(verb, s.RunInfo)
	a.Tags = s.tags
	return a
}

// find returns a run with what the request may see of it.
func (v *view) find(id string) (*seen, error) {
	if id == "" {
		return nil, &problem{http.StatusBadRequest, "The address names no run: it ends with ?id= and the run's ID or UUID."}
	}
	run, err := shared(v, "run "+id, func(ctx context.Context) (*durable.RunInfo, error) { return v.engine.Get(ctx, id) })
	if err != nil {
		if refused := v.mayRead(Action{Run: id}); refused != nil { // those who may read nothing do not learn which runs exist
			return nil, refused
		}
		if v.bounded() && errors.Is(err, durable.ErrNotFound) {
			return nil, errNoRun // as for a run that exists and is hidden
		}
		return nil, err
	}
	own := *run
	run, own.Tags, own.OpenCalls = &own, maps.Clone(own.Tags), slices.Clone(own.OpenCalls)
	if err := v.hideHidden(run); err != nil { // before Authorize, whose refusal may name the run
		return nil, err
	}
	if err := v.mayRead(actionOf(VerbRead, run)); err != nil {
		return nil, err
	}
	found := &seen{run, v.redactorOf(run), maps.Clone(run.Tags)}
	found.redactor.run(run)
	return found, nil
}

// list returns a page of the runs that match the filter and are visible.
func (v *view) list(f durable.Filter, p durable.Page) (durable.RunPage, error) {
	if err := v.mayRead(Action{Workflow: f.Workflow, Queue: f.Queue}); err != nil {
		return durable.RunPage{}, err
	}
	f, some := v.visibleAmong(f)
	if !some {
		return durable.RunPage{}, nil
	}
	page, err := v.sharedList(f, p)
	for i := range page.Runs {
		v.hideListed(&page.Runs[i])
	}
	if err != nil {
		return page, err
	}
	return page, v.hideParents(page.Runs)
}

// sharedList is Engine.List for a filter that has the conditions of [Visible].
func (v *view) sharedList(f durable.Filter, p durable.Page) (durable.RunPage, error) {
	page, err := shared(v, fmt.Sprintf("list %+v %+v", f, p), func(ctx context.Context) (durable.RunPage, error) { return v.engine.List(ctx, f, p) })
	page.Runs = slices.Clone(page.Runs)
	return page, err
}

// hideListed redacts a run of a list or a tree, which has no payloads.
func (v *view) hideListed(r *durable.RunInfo) {
	(&redactor{f: v.redact, workflow: r.Workflow}).run(r)
}

// eventList returns the events of a page that read returns and that are visible, and the cursor of the next page; empty: this is the last.
func (v *view) eventList(p durable.Page, read func(context.Context, durable.Page) ([]durable.Event, error)) (visible []durable.Event, next string, err error) {
	if err := v.mayRead(Action{}); err != nil {
		return nil, "", err
	}
	all, err := read(v.ctx(), p)
	if err != nil {
		return nil, "", err
	}
	if len(all) == p.Limit {
		next = all[len(all)-1].Cursor
	}
	visible, err = v.visibleEvents(all)
	return visible, next, err
}

// redactedHistory returns a history without what the request may not see.
func (v *view) redactedHistory(run *seen, opts ...durable.HistoryOption) ([]durable.Checkpoint, error) {
	all, err := v.engine.History(v.ctx(), run.RunID, opts...)
	for i := range all {
		v.hideChild(&all[i])
		run.redactor.checkpoint(&all[i])
	}
	return all, err
}

// redactedHistoryPage returns a part of a history. An output that is too long for the page has its size only.
func (v *view) redactedHistoryPage(run *seen, part durable.HistoryPart, opts ...durable.HistoryOption) (*durable.HistoryPage, error) {
	page, err := shared(v, fmt.Sprintf("history %s %+v %s", run.RunID, part, v.request.URL.Query().Get("generation")), func(ctx context.Context) (*durable.HistoryPage, error) {
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
		v.hideChild(&c.Checkpoint)
		if c.OutputSize > 0 && !run.redactor.payloads {
			c.Output = hidden
		}
		run.redactor.checkpoint(&c.Checkpoint)
	}
	return own, nil
}

// hideChild removes the UUID of a child that may be hidden.
func (v *view) hideChild(c *durable.Checkpoint) {
	if v.bounded() && c.Kind == durable.KindChild && c.EndedAt.IsZero() {
		c.Output = nil
	}
}

func (v *view) generations(run *seen) ([]durable.Generation, error) {
	all, err := shared(v, "generations "+run.RunID, func(ctx context.Context) ([]durable.Generation, error) { return v.engine.Generations(ctx, run.RunID) })
	all = slices.Clone(all)
	run.redactor.generations(all)
	return all, err
}

func (v *view) tree(run *seen) (*durable.RunNode, error) {
	root, err := v.engine.Tree(v.ctx(), run.RunID)
	if err != nil {
		return nil, err
	}
	if err := v.removeHiddenRuns(root); err != nil {
		return nil, err
	}
	root.Parent, root.Name = run.Parent, run.Name // which are empty if the parent is hidden
	each(root, func(n *durable.RunNode) { v.hideListed(&n.RunInfo) })
	return root, nil
}

// treeCounts counts the runs of a tree, unless some of them may be hidden.
func (v *view) treeCounts(run *seen) (durable.TreeCounts, error) {
	if v.bounded() {
		return durable.TreeCounts{}, errCountsHidden
	}
	return v.engine.Counts(v.ctx(), run.RunID)
}
