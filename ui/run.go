package ui

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// runData is what the page of a run shows.
type runData struct {
	Run         *durable.RunInfo
	Facts       []wording.Fact // what the run waits for, and why it does not continue
	Divergences []durable.Divergence
	Tags        []keyValue
	Unreceived  []keyValue
	Acts        []runAct
	Waterfall   *waterfall
	Generations durable.GenerationPage
	Generation  int  // the number of the generation whose history is shown; zero means the newest
	Earlier     bool // the newest generations are on an earlier page
	Tree        *treeRow
	Parent      *durable.RunInfo // nil for a root run
	Graph       *graphDrawing    // nil if the run has no graph, or one that is too large to draw
	Observed    *observedGraph   // the drawing of a run without a graph
	Links       []keyValue
	Command     string
}

type keyValue struct{ Key, Value string }

func (s *dashboard) runPage(w http.ResponseWriter, r *http.Request, v *requestView) error {
	q := r.URL.Query()
	run, err := v.findRun(q.Get("id"))
	if err != nil {
		return err
	}
	d := &runData{Run: run.RunInfo, Facts: wording.WaitFacts(v.at, run.RunInfo), Command: s.commandName + " get " + runCLIArgument(run.RunInfo)}
	if run.Diverged {
		if d.Divergences, err = readOncePerReloadRound(v, "divergences "+run.RunID, func(ctx context.Context) ([]durable.Divergence, error) { return v.engine.Divergences(ctx, run.RunID) }); err != nil {
			return err
		}
		d.Divergences = run.redactor.redactDivergences(d.Divergences)
	}
	for _, key := range slices.Sorted(maps.Keys(run.Tags)) {
		d.Tags = append(d.Tags, keyValue{key, run.Tags[key]})
	}
	for _, name := range slices.Sorted(maps.Keys(run.Unreceived)) {
		d.Unreceived = append(d.Unreceived, keyValue{name, withThousandsCommas(run.Unreceived[name])})
	}
	if v.AllowsActs() {
		d.Acts = s.actsForRun(run.RunInfo)
	}
	d.Earlier = q.Get(paramGenerations) != ""
	if d.Generations, err = v.redactedGenerations(run, durable.Page{Limit: generationsPerPage, Cursor: q.Get(paramGenerations)}); err != nil {
		return err
	}
	part, opts, err := parseHistoryPart(q, rowsPerPage)
	if err != nil {
		return err
	}
	d.Generation, _ = strconv.Atoi(q.Get("generation")) // it is a number, or missing
	part.From, part.Limit, part.Call = part.From/rowsPerPage*rowsPerPage, rowsPerPage, ""
	history, err := v.redactedHistoryPage(run, part, opts...)
	if err != nil {
		return err
	}
	if all := len(history.Outline); part.From >= all && all > 0 { // a repair has shortened the history
		part.From = (all - 1) / rowsPerPage * rowsPerPage
		if history, err = v.redactedHistoryPage(run, part, opts...); err != nil {
			return err
		}
	}
	d.Waterfall = newWaterfall(run.RunInfo, history, part.From, v.at)
	if d.Tree, err = v.readTopTreeLevels(run, mostTreeLevels, mostTreeRows); err != nil {
		return err
	}
	if d.Generation == 0 && (len(history.Outline) == 0 || slices.ContainsFunc(history.Outline, func(c durable.Checkpoint) bool { return c.Kind == durable.KindGraph })) {
		g, err := v.redactedGraph(run)
		if err != nil && !errors.Is(err, durable.ErrNoGraph) {
			return err
		}
		d.Graph = newGraphDrawing(g)
	}
	if d.Graph == nil {
		d.Observed = newObservedGraph(history.Outline, d.Tree.childIDs())
	}
	d.Links = v.runLinks(run.RunInfo)
	if run.Parent != "" {
		if parent, err := v.findRun(run.Parent); err == nil { // otherwise the parent was deleted, or is hidden
			d.Parent = parent.RunInfo
		}
	}
	return v.writePage(w, "run", http.StatusOK, pageFrame{Title: wording.Escape(run.ID), Section: "/runs", Notice: noticeAfterAct(q), Live: run.EndedAt.IsZero(), LiveRun: run.RunID, Data: d})
}

// parseHistoryPart returns the part of a history that an address selects.
func parseHistoryPart(q url.Values, size int) (part durable.HistoryPart, opts []durable.HistoryOption, err error) {
	number := func(name string, otherwise int) int {
		text := q.Get(name)
		if text == "" {
			return otherwise
		}
		n, wrong := strconv.Atoi(text)
		if wrong != nil || n < 0 {
			err = &statusError{http.StatusBadRequest, fmt.Sprintf("The parameter %s is no number.", name)}
		}
		return n
	}
	part = durable.HistoryPart{From: number("from", 0), Limit: number(paramLimit, size), Call: q.Get("call")}
	if q.Get("generation") != "" {
		opts = append(opts, durable.InGeneration(number("generation", 0)))
	}
	return part, opts, err
}

// callData is what the page of a call shows.
type callData struct {
	Run        *durable.RunInfo
	Call       *durable.SizedCheckpoint
	Generation int
}

// callResultPage shows the result of one call of a run, however long it is.
func (s *dashboard) callResultPage(w http.ResponseWriter, r *http.Request, v *requestView) error {
	q := r.URL.Query()
	run, err := v.findRun(q.Get("id"))
	if err != nil {
		return err
	}
	part, opts, err := parseHistoryPart(q, rowsPerPage)
	if err != nil {
		return err
	}
	if part.Call == "" {
		return &statusError{http.StatusBadRequest, "The address names no call: it ends with &call= and the name of the call."}
	}
	page, err := v.redactedHistoryPage(run, part, opts...)
	if err != nil {
		return err
	}
	d := &callData{Run: run.RunInfo, Call: &page.Calls[0]}
	d.Generation, _ = strconv.Atoi(q.Get("generation"))
	return v.writePage(w, "call", http.StatusOK, pageFrame{Title: wording.Escape(d.Call.Name), Section: "/runs", Data: d})
}

// treeRow is a run of the tree of children.
type treeRow struct {
	*durable.RunInfo
	Children []*treeRow
	More     bool // set on the root only: some descendants are not shown
}

// The bounds of the tree that a page shows: its runs, and its levels. A tree can have many thousand runs.
const (
	mostTreeRows   = 60
	mostTreeLevels = 4
)

// readTopTreeLevels reads the first levels of a run's tree, each with one statement, and at most rows descendants.
func (v *requestView) readTopTreeLevels(run *visibleRun, levels, rows int) (*treeRow, error) {
	root := &treeRow{RunInfo: run.RunInfo}
	level, left := map[string]*treeRow{run.RunID: root}, rows
	for range levels {
		f, some := v.restrictToVisible(durable.Filter{Parent: slices.Sorted(maps.Keys(level))})
		if !some || left == 0 {
			root.More = root.More || some // perhaps
			return root, nil
		}
		page, err := v.listRunsCached(f, durable.Page{Limit: left})
		if err != nil {
			return nil, err
		}
		root.More = root.More || page.Next != ""
		left -= len(page.Runs)
		next := make(map[string]*treeRow, len(page.Runs))
		for _, r := range slices.Backward(page.Runs) { // the oldest first
			v.redactListedRun(&r)
			row := &treeRow{RunInfo: &r}
			next[r.RunID] = row
			if above := level[r.Parent]; above != nil { // otherwise the generation of its parent was deleted meanwhile
				above.Children = append(above.Children, row)
			}
		}
		if len(next) == 0 {
			return root, nil
		}
		level = next
	}
	root.More = true // perhaps
	return root, nil
}

// FormatPayload returns the input or the output of the run for people; empty if there is none.
func (d *runData) FormatPayload(value jsontext.Value) string {
	if len(value) == 0 {
		return ""
	}
	return formatPayload(value)
}

// repairPreview is what a preview shows.
type repairPreview struct {
	*actOutcome
	Fields []keyValue // the fields of the form that makes the repair
}

func newRepairPreview(done *actOutcome, f actForm) *repairPreview {
	p := &repairPreview{actOutcome: done}
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		for _, value := range f.Values[name] {
			if name != "dry_run" {
				p.Fields = append(p.Fields, keyValue{name, value})
			}
		}
	}
	return p
}
