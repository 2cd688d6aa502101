package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/seed8ec063be/durable"
)

// registerAPIRoutes registers the JSON, which shows what the pages show: docs/dashboard.md describes it.
func (s *dashboard) registerAPIRoutes() {
	for path, read := range map[string]func(*requestView, url.Values) (any, error){
		"runs":      apiRuns,
		"bulk":      apiBulkPreview,
		"counts":    func(v *requestView, _ url.Values) (any, error) { n, _, err := v.statusCounts(); return n, err },
		"queues":    func(v *requestView, _ url.Values) (any, error) { return v.queueList() },
		"limits":    func(v *requestView, _ url.Values) (any, error) { return v.limitList() },
		"schedules": func(v *requestView, _ url.Values) (any, error) { return v.scheduleList() },
		"workers":   func(v *requestView, _ url.Values) (any, error) { return v.workerList() },
		"events":    apiEvents,
		"latest_events": func(v *requestView, q url.Values) (any, error) {
			p, err := v.parsePage(q, 100)
			if err != nil {
				return nil, err
			}
			return v.latestEvents(p)
		},
		"failures":       apiFailures,
		"health":         func(v *requestView, _ url.Values) (any, error) { return v.healthData() },
		"audit":          func(v *requestView, q url.Values) (any, error) { return v.auditData(q) },
		"schedule_fires": apiScheduleFires,
		"run":            withVisibleRun(func(v *requestView, run *visibleRun, _ url.Values) (any, error) { return run.RunInfo, nil }),
		"history":        withVisibleRun(apiHistory),
		"history_page": withVisibleRun(func(v *requestView, run *visibleRun, q url.Values) (any, error) {
			part, opts, err := parseHistoryPart(q, 100)
			if err != nil {
				return nil, err
			}
			return v.redactedHistoryPage(run, part, opts...)
		}),
		"divergences": withVisibleRun(func(v *requestView, run *visibleRun, _ url.Values) (any, error) {
			all, err := v.engine.Divergences(v.ctx(), run.RunID)
			return run.redactor.redactDivergences(all), err
		}),
		"generations": withVisibleRun(apiGenerations),
		"tree":        withVisibleRun(apiTree),
		"graph":       withVisibleRun(func(v *requestView, run *visibleRun, _ url.Values) (any, error) { return v.redactedGraph(run) }),
		"tree_counts": withVisibleRun(func(v *requestView, run *visibleRun, _ url.Values) (any, error) { return v.treeCounts(run) }),
		"stats": func(v *requestView, _ url.Values) (any, error) {
			return v.engine.Stats(), v.checkMayRead(Action{})
		},
	} {
		s.handle("GET /api/v1/"+path, s.pageHandler(func(w http.ResponseWriter, r *http.Request, v *requestView) error {
			value, err := read(v, r.URL.Query())
			if err != nil {
				return err
			}
			writeJSON(w, http.StatusOK, value)
			return nil
		}))
	}
	s.handle("POST /api/v1/act", s.pageHandler(apiPerformAct))
	s.handle("POST /api/v1/bulk", s.pageHandler(apiPerformBulkBatch))
	s.handle("/api/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.writeError(w, r, &statusError{http.StatusNotFound, "there is no such address, or it takes another method"})
	}))
}

func withVisibleRun(read func(*requestView, *visibleRun, url.Values) (any, error)) func(*requestView, url.Values) (any, error) {
	return func(v *requestView, q url.Values) (any, error) {
		run, err := v.findRun(q.Get("id"))
		if err != nil {
			return nil, err
		}
		return read(v, run, q)
	}
}

// checkKnownConditions returns an error if an address has a parameter that is neither a condition of a filter nor a limit or cursor: without
// the condition, the list would have more runs than its author intended. The addresses of pages, which have further parameters, are not
// checked.
func checkKnownConditions(q url.Values) error {
	for name := range q {
		if !slices.Contains(filterParams, name) && name != paramLimit && name != paramCursor {
			return &statusError{http.StatusBadRequest, fmt.Sprintf("there is no condition %q of a filter: docs/dashboard.md names them", name)}
		}
	}
	return nil
}

func apiRuns(v *requestView, q url.Values) (any, error) {
	if err := checkKnownConditions(q); err != nil {
		return nil, err
	}
	f, err := parseFilter(q, v.at)
	if err != nil {
		return nil, err
	}
	p, err := v.parsePage(q, 100)
	if err != nil {
		return nil, err
	}
	return v.listRuns(f, p)
}

func apiEvents(v *requestView, q url.Values) (any, error) {
	p, err := v.parsePage(q, 100)
	if err != nil {
		return nil, err
	}
	page, _, err := v.eventList(p, v.engine.Events)
	return page, err
}

// apiFailures returns the groups of failures of the filter. Without a time in the filter, it returns the groups of the last seven days.
func apiFailures(v *requestView, q url.Values) (any, error) {
	if err := checkKnownConditions(q); err != nil {
		return nil, err
	}
	f, _, err := parseFailuresFilter(q, v.at)
	if err != nil {
		return nil, err
	}
	rows, err := v.failureGroups(f, nil)
	groups := make([]durable.FailureGroup, len(rows))
	for i := range rows {
		groups[i] = rows[i].FailureGroup
	}
	return groups, err
}

// apiScheduleFires returns what happened at the latest times of a schedule, if the request may see the schedule.
func apiScheduleFires(v *requestView, q url.Values) (any, error) {
	p, err := v.parsePage(q, 100)
	if err != nil {
		return nil, err
	}
	name := q.Get("name")
	if err := v.checkMayRead(Action{Schedule: name}); err != nil {
		return nil, err
	}
	if err := v.checkMayReadSchedule(name); err != nil {
		return nil, err
	}
	return v.engine.ScheduleFires(v.ctx(), name, p)
}

func apiHistory(v *requestView, run *visibleRun, q url.Values) (any, error) {
	text := q.Get("generation")
	if text == "" {
		return v.redactedHistory(run)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil, &statusError{http.StatusBadRequest, "the generation is no number"}
	}
	return v.redactedHistory(run, durable.InGeneration(n))
}

// apiTreeLevels bounds the levels of a tree, because each level costs one statement.
const apiTreeLevels = 20

// runTree is a run with its descendants.
type runTree struct {
	durable.RunNode
	More bool // of the first run: some descendants are left out
}

// apiTree returns the first levels of the tree of a run, with the newest runs of each level.
func apiTree(v *requestView, run *visibleRun, q url.Values) (any, error) {
	p, err := v.parsePage(q, 1000)
	if err != nil {
		return nil, err
	}
	top, err := v.readTopTreeLevels(run, apiTreeLevels, p.Limit)
	if err != nil {
		return nil, err
	}
	tree := &runTree{*top.toRunNode(), top.More}
	tree.Input, tree.Output = nil, nil // as of the others
	return tree, nil
}

// toRunNode returns the run with its descendants.
func (t *treeRow) toRunNode() *durable.RunNode {
	n := &durable.RunNode{RunInfo: *t.RunInfo}
	for _, child := range t.Children {
		n.Children = append(n.Children, child.toRunNode())
	}
	return n
}

func (v *requestView) redactedGraph(run *visibleRun) (*durable.GraphInfo, error) {
	recorded, err := readOncePerReloadRound(v, "graph "+run.RunID, func(ctx context.Context) (*durable.GraphInfo, error) { return v.engine.Graph(ctx, run.RunID) })
	if err != nil {
		return nil, err
	}
	own := *recorded
	g := &own
	g.Nodes = slices.Clone(g.Nodes)
	children := make([]string, len(g.Nodes))
	for i := range g.Nodes {
		children[i] = g.Nodes[i].Child
	}
	var visible map[string]string
	if v.hasLimitedVisibility() {
		if visible, err = v.findVisibleRuns(children); err != nil {
			return nil, err
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if _, sees := visible[n.Child]; v.hasLimitedVisibility() && !sees {
			n.Child = ""
		}
		if n.Err != nil && n.Err.Err != nil && v.redact != nil {
			text := n.Err.Err.Error()
			run.redactor.redactText(FieldError, n.Name, &text)
			n.Err = &durable.NodeError{Node: n.Err.Node, State: n.Err.State, Err: errors.New(text)}
		}
	}
	return g, nil
}

// apiPerformAct performs the act of a JSON object: the fields of the forms, as strings or as JSON values.
func apiPerformAct(w http.ResponseWriter, r *http.Request, v *requestView) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	fields, err := parseActFields(body)
	if err != nil {
		return err
	}
	done, err := v.performAct(v.newActForm(fields))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, done)
	return nil
}
