package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// A bulk act performs one act on every run that a filter matches. Its preview freezes the filter: relative times become absolute, and runs
// that are started afterwards are not changed. Each portion is a form of its own, which says where the next portion begins. Therefore a
// bulk act needs no script, and no state in the server: it stops when nobody sends the next form, and can be continued from any of its
// pages.

const (
	portionSize  = 100             // the most runs of a portion
	portionTime  = 2 * time.Second // by default, a portion searches for at most this time, and begins no further run after it
	previewSize  = 20              // how many runs the preview lists
	paramVerb    = "verb"
	paramReason  = "reason"
	paramDone    = "done"
	paramRefused = "refused"
)

// bulkParams are the parameters of a bulk act besides those of its filter.
var bulkParams = []string{paramVerb, paramCursor, paramReason, paramDone, paramRefused}

// bulkVerb is an act on many runs.
type bulkVerb struct {
	Name, Done string
	statuses   []durable.Status // the runs it considers
	Roots      bool             // it considers root runs only
	// needsNoAct reports whether the run needs no act; nil means each run needs one.
	needsNoAct func(*durable.RunInfo) bool
}

// bulkVerbs are the acts on many runs: those for which the engine has methods that take a filter.
var bulkVerbs = []bulkVerb{
	{Name: "retry", Done: "retried", statuses: []durable.Status{durable.StatusFailed, durable.StatusExpired}, Roots: true},
	{Name: "pause", Done: "paused, or will be when their running steps have finished", statuses: wording.StatusGroups["live"], needsNoAct: func(r *durable.RunInfo) bool {
		return r.Status == durable.StatusPaused || r.Requested != "" || r.Cancellation != nil
	}},
	{Name: "resume", Done: "resumed", statuses: wording.StatusGroups["live"], needsNoAct: func(r *durable.RunInfo) bool {
		return r.Status != durable.StatusPaused && r.Requested != durable.VerbPause
	}},
	{Name: "cancel", Done: "cancelled, or will be when their compensations have finished", statuses: wording.StatusGroups["live"], needsNoAct: func(r *durable.RunInfo) bool {
		return r.Cancellation != nil
	}},
	{Name: "terminate", Done: "terminated", statuses: wording.StatusGroups["live"]},
	{Name: "delete", Done: "deleted", statuses: wording.StatusGroups["ended"], Roots: true},
}

// BulkVerbs returns the acts on many runs, for the form of the list.
func (v *requestView) BulkVerbs() []bulkVerb { return bulkVerbs }

// bulkData is what the pages of a bulk act show.
type bulkData struct {
	Verb     bulkVerb
	Fields   []keyValue // the frozen filter, and where the next portion begins, for its form
	Reason   string
	Runs     []durable.RunInfo // the first runs of the preview
	Number   string            // the number of runs that the preview has found; empty if this is no preview
	List     string            // the address of the list of the runs that match
	Resume   string            // the address of the preview of the remaining runs
	Done     int               // includes the previous portions
	Refused  int
	Refusals []refusal // the refusals of this portion
	Stopped  string    // why the portion ended before it had handled all its runs; empty if it has handled all
	Finished bool
	// SearchedTo is not zero if the search for runs stopped at this time of start. The next search continues with runs that were started
	// earlier.
	SearchedTo time.Time
	Command    string
}

// refusal is a run for which an act was refused, and the reason.
type refusal struct{ ID, Text string }

// bulkAct is a bulk act as its address or its form describes it.
type bulkAct struct {
	verb           bulkVerb
	filterParams   url.Values // the frozen filter, as parameters
	filter         durable.Filter
	cursor         string // the UUID of the last run that was handled or searched; empty at the beginning
	matchesNothing bool   // no run can match
}

// parseBulk returns the bulk act that an address or a form describes.
func (v *requestView) parseBulk(q url.Values) (*bulkAct, error) {
	b := &bulkAct{filterParams: selectFilterParams(q), cursor: q.Get(paramCursor)}
	at := slices.IndexFunc(bulkVerbs, func(b bulkVerb) bool { return b.Name == q.Get(paramVerb) })
	if at < 0 {
		return nil, &statusError{http.StatusBadRequest, "There is no act " + strconv.Quote(q.Get(paramVerb)) + " for many runs."}
	}
	b.verb = bulkVerbs[at]
	if !v.AllowsActs() {
		_, err := v.authorizeAction(v.request, Action{Verb: Verb(b.verb.Name)})
		return nil, err
	}
	for name := range q {
		if !slices.Contains(filterParams, name) && !slices.Contains(bulkParams, name) {
			return nil, &statusError{http.StatusBadRequest, fmt.Sprintf("There is no condition %q of a filter: docs/dashboard.md names them.", name)}
		}
	}
	chooses := slices.ContainsFunc(filterParams, func(name string) bool { return name != paramRoots && b.filterParams.Get(name) != "" })
	if !chooses {
		return nil, &statusError{http.StatusBadRequest, "The filter chooses nothing in particular. For all runs, give \"Started before: now\"."}
	}
	if err := v.resolveFilterTimes(b); err != nil {
		return nil, err
	}
	if b.filter, b.matchesNothing = restrictFilterToVerb(b.filter, b.verb); b.verb.Roots {
		b.filter.Roots = true
	}
	return b, nil
}

// restrictFilterToVerb adds to a filter the conditions on the runs that a verb can change. It also reports whether no run can match.
func restrictFilterToVerb(f durable.Filter, verb bulkVerb) (durable.Filter, bool) {
	f, some := intersectFilters(f, durable.Filter{Status: verb.statuses})
	return f, !some
}

// resolveFilterTimes makes the times of the filter absolute, and bounds it to the runs that were started before now, by the database's clock. A
// filter that was frozen before does not change.
func (v *requestView) resolveFilterTimes(b *bulkAct) error {
	now, err := v.engine.Now(v.ctx())
	if err != nil {
		return err
	}
	now = now.In(v.at.Location()) // as the list reads them
	if b.filter, err = parseFilter(b.filterParams, now); err != nil {
		return err
	}
	before := now
	if b.filter.OlderThan > 0 {
		before = now.Add(-b.filter.OlderThan)
	}
	if limit := b.filter.CreatedBefore; limit.IsZero() || before.Before(limit) {
		b.filter.CreatedBefore = before
	}
	b.filter.OlderThan = 0
	b.filterParams.Del(paramOlder)
	for name, t := range timeFieldsByParam(&b.filter) {
		if !t.IsZero() {
			b.filterParams.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	return nil
}

// listBulkRuns returns runs that match, after the last run that the act has handled. If no index finds the runs, it searches for a bounded time,
// and RunPage.Next is where the next search continues.
func (v *requestView) listBulkRuns(b *bulkAct, limit int) (durable.RunPage, error) {
	if b.matchesNothing {
		return durable.RunPage{}, nil
	}
	return v.listRuns(b.filter, durable.Page{Limit: limit, Cursor: b.cursor, MaxTime: v.portionTime})
}

// bulkPageData returns what the pages of the act have in common.
func (s *dashboard) bulkPageData(b *bulkAct, reason string) *bulkData {
	d := &bulkData{Verb: b.verb, Reason: reason, List: "/runs?" + b.filterParams.Encode(), Command: s.bulkCLICommand(b.verb.Name, b.filterParams)}
	rest := url.Values{paramVerb: {b.verb.Name}}
	for _, name := range filterParams {
		for _, value := range b.filterParams[name] {
			rest.Add(name, value)
		}
	}
	if b.cursor != "" {
		rest.Set(paramCursor, b.cursor)
	}
	d.Resume = "/bulk?" + rest.Encode()
	for _, name := range append([]string{paramVerb, paramCursor}, filterParams...) {
		for _, value := range rest[name] {
			d.Fields = append(d.Fields, keyValue{name, value})
		}
	}
	return d
}

// bulkCLICommand returns the command of the CLI that does the same.
func (s *dashboard) bulkCLICommand(verb string, q url.Values) string {
	return s.commandName + " " + verb + cliFlagsOfFilter(q)
}

// bulkPreview shows which runs an act would change, and changes nothing.
func (s *dashboard) bulkPreview(w http.ResponseWriter, r *http.Request, v *requestView) error {
	b, err := v.parseBulk(r.URL.Query())
	if err != nil {
		return err
	}
	found, err := v.listBulkRuns(b, mostCounted)
	if err != nil {
		return err
	}
	d := s.bulkPageData(b, "")
	d.Number = statusCount{Runs: len(found.Runs), More: found.Next != ""}.Text()
	d.SearchedTo = found.SearchedTo
	d.Runs = found.Runs[:min(previewSize, len(found.Runs))]
	return v.writePage(w, "bulk", http.StatusOK, pageFrame{Title: "Preview", Section: "/runs", Data: d})
}

// performBulkBatch performs an act on the next runs.
func (s *dashboard) performBulkBatch(w http.ResponseWriter, r *http.Request, v *requestView) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	b, err := v.parseBulk(r.PostForm)
	if err != nil {
		return err
	}
	found, err := v.listBulkRuns(b, portionSize)
	if err != nil {
		return err
	}
	var done bulkBatchResult
	done.performOnPage(v, b, found, r.PostForm.Get(paramReason))
	d := s.bulkPageData(b, r.PostForm.Get(paramReason))
	d.Done, d.Refused = done.changedCount+formNumber(r.PostForm, paramDone), len(done.refusals)+formNumber(r.PostForm, paramRefused)
	d.Refusals, d.Stopped, d.Finished = done.refusals, done.stopReason, done.reachedLastRun
	if done.reachedPageEnd {
		d.SearchedTo = found.SearchedTo
	}
	return v.writePage(w, "bulk", http.StatusOK, pageFrame{Title: "Many runs", Section: "/runs", Data: d})
}

// formNumber returns a number of the form; zero if it has none.
func formNumber(q url.Values, name string) int {
	n, _ := strconv.Atoi(q.Get(name))
	return max(0, n)
}

// bulkBatchResult is the result of one portion of an action on many runs.
type bulkBatchResult struct {
	changedCount   int
	refusals       []refusal
	stopReason     string
	reachedPageEnd bool // all runs of the page were handled
	reachedLastRun bool // the last run of the act was handled
}

// performOnPage performs the act on each run of the page, and moves the cursor. It stops when its time is over, and at an error that does
// not concern a single run only.
func (p *bulkBatchResult) performOnPage(v *requestView, b *bulkAct, page durable.RunPage, reason string) {
	began := time.Now()
	for i := range page.Runs {
		run := &page.Runs[i]
		if i > 0 && time.Since(began) > v.portionTime {
			return
		}
		if b.verb.needsNoAct == nil || !b.verb.needsNoAct(run) {
			_, err := v.performAct(v.newActForm(url.Values{paramVerb: {b.verb.Name}, paramTargetRun: {run.RunID}, paramReason: {reason}}))
			status, text := 0, ""
			if err != nil {
				status, text = httpStatus(err)
			}
			switch {
			case err == nil:
				p.changedCount++
			case status == http.StatusNotFound: // it was deleted meanwhile
			case status < http.StatusInternalServerError:
				p.refusals = append(p.refusals, refusal{run.ID, text})
			default:
				p.stopReason = text
				return
			}
		}
		b.cursor = run.RunID
	}
	p.reachedPageEnd, p.reachedLastRun = true, page.Next == ""
	if !page.SearchedTo.IsZero() {
		b.cursor = page.Next
	}
}
