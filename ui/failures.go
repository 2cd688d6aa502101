package ui

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
)

// failureRow is a group of failures.
type failureRow struct {
	durable.FailureGroup
	Number, NewestID, Message string
	NewestAt                  time.Time
	after                     time.Time  // the runs of the group were started after this time; zero: at any time
	conditions                url.Values // further conditions on the group's runs, as in an address
}

// Path returns the address of the runs of the group.
func (g *failureRow) Path() string {
	q := selectFilterParams(g.conditions)
	q.Set(paramWorkflow, g.Workflow)
	q.Set(paramFailureStep, g.Step)
	q.Set(paramFailureType, g.Type)
	if !g.after.IsZero() && !q.Has(paramAfter) {
		q.Set(paramAfter, g.after.UTC().Format(time.RFC3339))
	}
	return "/runs?" + q.Encode()
}

// RetryPath returns the address of the preview that retries the runs of the group.
func (g *failureRow) RetryPath() string {
	_, query, _ := strings.Cut(g.Path(), "?")
	return "/bulk?" + paramVerb + "=retry&" + query
}

// failuresPeriod is how old the failures of the overview, and of the page of failures without a time, may be.
const failuresPeriod = 7 * 24 * time.Hour

// parseFailuresFilter returns the filter of an address, and reports whether the address has no time, so that failuresPeriod bounds the
// filter.
func parseFailuresFilter(q url.Values, now time.Time) (f durable.Filter, isDefault bool, err error) {
	if f, err = parseFilter(q, now); err == nil && f.CreatedAfter.IsZero() && f.CreatedBefore.IsZero() && f.OlderThan == 0 {
		f.CreatedAfter, isDefault = now.Add(-failuresPeriod), true
	}
	return f, isDefault, err
}

// failureGroups groups the visible runs that failed or expired. The conditions are those of the filter in an address.
func (v *requestView) failureGroups(f durable.Filter, conditions url.Values) (rows []*failureRow, err error) {
	if err := v.checkMayRead(Action{Workflow: f.Workflow}); err != nil {
		return nil, err
	}
	f, second := v.splitTagFilter(f)
	if second != nil {
		return nil, errSecondTag
	}
	f, some := v.restrictToVisible(f)
	if !some {
		return nil, nil
	}
	f.CreatedAfter = f.CreatedAfter.Truncate(time.Minute) // so that requests share the read
	groups, _, err := readOncePerRoundOrPeriod(v, cacheKey("failures", f), countsPeriod, func(ctx context.Context) ([]durable.FailureGroup, error) {
		return v.engine.Failures(ctx, f)
	})
	for _, g := range groups {
		row := &failureRow{FailureGroup: g, Number: statusCount{Runs: g.Runs, More: g.More}.Text(), NewestID: g.ID, NewestAt: g.Last, after: f.CreatedAfter, conditions: conditions}
		if e := (&redactor{redact: v.redact, workflow: g.Workflow}).redactRunError(g.Err); e != nil {
			row.Err, row.Message = e, e.Message
		}
		rows = append(rows, row)
	}
	return rows, err
}

// failuresData is what the page of failures shows.
type failuresData struct {
	Title    string
	Failures []*failureRow
}

// failuresPage lists the groups of failures of the filter in the address.
func (s *dashboard) failuresPage(w http.ResponseWriter, r *http.Request, v *requestView) error {
	q := r.URL.Query()
	f, isDefault, err := parseFailuresFilter(q, v.at)
	if err != nil {
		return err
	}
	d := &failuresData{Title: "Failures"}
	if isDefault {
		d.Title = "Failures of the last seven days"
	}
	if d.Failures, err = v.failureGroups(f, selectFilterParams(q)); err != nil {
		return err
	}
	return v.writePage(w, "failures", http.StatusOK, pageFrame{Title: "Failures", Section: "/", Live: true, Data: d})
}
