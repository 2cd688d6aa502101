package ui_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// secret is in every text of the tenant that Visible hides.
const secret = "zq7hidden"

var (
	family    *durable.Workflow[string, string] // it and strangers start each other
	strangers = durable.Define(secret+"-flow", func(c *durable.Ctx, in string) (string, error) {
		switch in {
		case "wait":
			return c.Receive[string](secret + "-signal")
		case "family":
			return c.Child(secret+"-kid", family, "shown", durable.InQueue("shown-queue"), durable.Tag("tenant.id", "a"))
		case "fail":
			return c.Step(secret+"-step", func(context.Context) (string, error) { return "", errors.New(secret + " failed") })
		}
		return secret + "-output", nil
	})
	repairPreview = durable.DefineGraph("plan", func(g *durable.Graph[string]) *durable.Node[string] {
		return g.Child("kid", approval, func(*durable.NodeInput) (string, error) { return "in", nil }, durable.InQueue(secret+"-queue"))
	})
)

func init() {
	family = durable.Define("family", func(c *durable.Ctx, kid string) (string, error) {
		if kid == "fork" {
			return c.Step("work", func(context.Context) (string, error) { return "worked", nil })
		}
		opts := []durable.StartOption{durable.InQueue("shown-queue"), durable.Tag("tenant.id", "a")}
		if kid == "stranger" {
			opts = []durable.StartOption{durable.InQueue(secret + "-queue"), durable.Tag("tenant.id", secret)}
			return c.Child("kid", strangers, "wait", opts...)
		}
		return c.Child("kid", approval, "in", opts...)
	})
}

// tenants starts the runs of two tenants, who know each other's runs in all ways in which runs can.
func tenants(t *testing.T, e *durable.Engine) {
	t.Helper()
	ctx := within(t)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	begin := func(w *durable.Workflow[string, string], id, in string, opts ...durable.StartOption) {
		t.Helper()
		_, err := w.Start(ctx, e, in, append(opts, durable.ID(id))...)
		check(err)
	}
	shown, hidden := durable.Tag("tenant.id", "a"), durable.Tag("tenant.id", secret)
	for _, name := range []string{"shared-queue", secret + "-queue", "shown-queue"} {
		check(e.SetQueue(ctx, name, durable.QueueSettings{MaxExecuting: 50}))
	}
	check(e.SetQueue(ctx, "narrow-queue", durable.QueueSettings{MaxExecuting: 1}))
	begin(family, "shown-parent", "stranger", shown, durable.InQueue("shown-queue"))
	begin(family, "shown-family", "shown", shown, durable.InQueue("shown-queue"))
	begin(strangers, secret+"-parent", "family", hidden, durable.InQueue(secret+"-queue"))
	begin(strangers, secret+"-fails", "fail", hidden, durable.InQueue(secret+"-queue"))
	begin(strangers, secret+"-done", secret+"-input", hidden, durable.InQueue(secret+"-queue"), durable.GroupKey(secret+"-key"))
	begin(family, "plain", "fork", shown, durable.InQueue("shown-queue"))
	begin(repairPreview, "shown-graph", "wait", shown, durable.InQueue("shown-queue"))
	check(e.PauseQueue(ctx, "shared-queue"))
	begin(family, "shown-shared", "fork", shown, durable.InQueue("shared-queue"), durable.GroupKey("shown-key"))
	for i := range 3 {
		begin(strangers, fmt.Sprintf("%s-shared-%d", secret, i), "wait", hidden, durable.InQueue("shared-queue"), durable.GroupKey(secret+"-key"))
	}
	check(e.SetLimit(ctx, secret+"-limit", durable.LimitBounds{Concurrent: 1}))
	for _, s := range []durable.Schedule{
		strangers.Schedule(secret+"-input", durable.Schedule{Name: secret + "-schedule", Cron: "0 0 1 1 *", Queue: secret + "-queue", Tags: map[string]string{"tenant.id": secret}}),
		family.Schedule("fork", durable.Schedule{Name: "shown-schedule", Cron: "0 0 1 1 *", Queue: "shown-queue", Tags: map[string]string{"tenant.id": "a"}}),
	} {
		check(e.SetSchedule(ctx, s))
	}
	until(t, func() bool {
		page, err := e.List(ctx, durable.Filter{}, durable.Page{})
		check(err)
		failed, children, queues := 0, 0, 0
		for _, r := range page.Runs {
			switch {
			case r.Status == durable.StatusFailed || r.ID == "plain" && r.Status == durable.StatusCompleted:
				failed++
			case r.Parent != "" && r.Status == durable.StatusWaiting:
				children++
			}
		}
		all, err := e.Queues(ctx)
		check(err)
		for _, q := range all {
			if q.Name == "shared-queue" && len(q.Keys) == 2 {
				queues++
			}
		}
		return failed == 2 && children == 5 && queues == 1
	})
	_, err := e.Fork(ctx, "plain", durable.NewID("shown-fork"), durable.From("work"))
	check(err)
	_, err = e.Retry(ctx, secret+"-fails", durable.Reason(secret+"-reason"))
	check(err)
	_, err = e.Pause(ctx, secret+"-parent", durable.Reason("for all children"))
	check(err)
	until(t, func() bool { // nothing changes any more
		page, err := e.List(ctx, durable.Filter{Status: []durable.Status{durable.StatusPending, durable.StatusRunning}}, durable.Page{})
		check(err)
		return !slices.ContainsFunc(page.Runs, func(r durable.RunInfo) bool { return r.Queue != "shared-queue" })
	})
}

// until waits until the condition holds.
func until(t *testing.T, condition func() bool) {
	t.Helper()
	for ctx := within(t); !condition(); runtime.Gosched() {
		if ctx.Err() != nil {
			t.Fatal("the condition did not hold in time")
		}
	}
}

// addresses returns the requests of a route, for each of the runs if it is about one. It fails the test for a route that it does not know.
func addresses(t *testing.T, pattern string, runs []string) (all []string) {
	t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	path = strings.TrimSuffix(path, "{$}")
	ofRuns := func(more ...string) {
		for _, id := range runs {
			for _, query := range append(more, "") {
				all = append(all, path+"?id="+url.QueryEscape(id)+query)
			}
		}
	}
	switch {
	case pattern == "/" || pattern == "/api/" || method == http.MethodPost || strings.HasPrefix(path, "/assets/"): // acts have tests of their own
	case path == "/runs": // it repeats the filter
		all = []string{path, path + "?status=failed", path + "?tag=tenant.id", path + "?limit=2"}
	case path == "/bulk", path == "/api/v1/bulk":
		all = []string{path + "?verb=retry&created_before=now", path + "?verb=pause&tag=tenant.id", path + "?verb=delete&status=ended"}
	case path == "/api/v1/runs":
		all = []string{path, path + "?status=failed", path + "?workflow=" + secret + "-flow", path + "?queue=shared-queue&key=" + secret + "-key", path + "?tag=tenant.id", path + "?id_prefix=" + secret, path + "?limit=2"}
	case path == "/run" || path == "/api/v1/history":
		ofRuns("&generation=1")
	case slices.Contains([]string{"/api/v1/run", "/api/v1/generations", "/api/v1/tree", "/api/v1/tree_counts", "/api/v1/graph", "/api/v1/divergences"}, path):
		ofRuns()
	case path == "/api/v1/history_page":
		ofRuns("&call=none")
	case path == "/call":
		for _, id := range runs {
			all = append(all, path+"?call=none&id="+url.QueryEscape(id))
		}
	case path == "/api/v1/schedule_fires":
		all = []string{path + "?name=shown-schedule"}
	case path == "/live":
		for _, id := range runs {
			all = append(all, path+"?run="+url.QueryEscape(id))
		}
	case slices.Contains([]string{"/", "/failures", "/queues", "/limits", "/schedules", "/workers", "/events", "/audit", "/health"}, path),
		slices.Contains([]string{"/api/v1/counts", "/api/v1/queues", "/api/v1/limits", "/api/v1/schedules", "/api/v1/workers", "/api/v1/events", "/api/v1/latest_events", "/api/v1/audit", "/api/v1/failures", "/api/v1/health", "/api/v1/stats"}, path):
		if all = []string{path, path + "?limit=1000"}; strings.HasSuffix(path, "events") || strings.HasSuffix(path, "audit") {
			all = append(all, path+"?limit=1", path+"?limit=5") // whose last events are hidden
		}
	default:
		t.Errorf("the route %q is new: say here how it is requested", pattern)
	}
	return all
}

// What Visible hides appears on no page and in no JSON, whatever it is chosen by.
func TestHiddenRunsAppearNowhere(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		tenants(t, e)
		everything, err := e.List(within(t), durable.Filter{}, durable.Page{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for name, bound := range map[string]durable.Filter{
			"a tag": {Tag: "tenant.id", TagValue: "a"}, "a workflow": {Workflow: "family"}, "a queue": {Queue: "shown-queue"},
			"a prefix": {IDPrefix: "shown"}, "a queue and a workflow": {Queue: "shared-queue", Workflow: "family"},
			"a queue and a key": {Queue: "shared-queue", GroupKey: "shown-key"}, "a status": {Workflow: "family", Status: []durable.Status{durable.StatusWaiting}},
		} {
			t.Run(name, func(t *testing.T) {
				visible, err := e.List(within(t), bound, durable.Page{Limit: 1000})
				if err != nil || len(visible.Runs) == 0 {
					t.Fatalf("%d runs are visible, %v", len(visible.Runs), err)
				}
				var shown, hidden []string
				for _, r := range everything.Runs {
					if slices.ContainsFunc(visible.Runs, func(s durable.RunInfo) bool { return s.RunID == r.RunID }) {
						shown = append(shown, r.ID)
					} else {
						hidden = append(hidden, r.ID, r.RunID)
					}
				}
				h := ui.Handler(e, ui.Authorize(anyone), ui.Visible(func(*http.Request) durable.Filter { return bound }))
				leaks := func(what string, got *httptest.ResponseRecorder) {
					t.Helper()
					body := got.Body.String() + got.Header().Get("Location")
					for _, text := range append(hidden, secret) {
						// IDs are looked for as they are shown: a short one may be a part of another word.
						if strings.Contains(body, ">"+text+"<") || strings.Contains(body, `"`+text+`"`) || strings.Contains(body, "id="+text) || strings.Contains(body, text) && (text == secret || len(text) == 36) {
							t.Errorf("%s gives %d and shows %q:\n%s", what, got.Code, text, body)
							return
						}
					}
				}
				for _, pattern := range ui.Patterns(h) {
					for _, address := range addresses(t, pattern, shown) {
						got := read(h, address)
						leaks(address, got)
						if got.Code != http.StatusOK && got.Code != http.StatusForbidden && !(got.Code == http.StatusNotFound && (strings.Contains(address, "generation=1") || strings.Contains(address, "call=none") || strings.Contains(address, "/graph") || strings.Contains(address, "schedule_fires"))) {
							t.Errorf("%s gives %d: %s", address, got.Code, got.Body)
						}
						if id := strings.TrimPrefix(address, "/run?id="); slices.Contains(shown, id) && !strings.Contains(got.Body.String(), id+"</span>") {
							t.Errorf("%s does not show a visible run: %s", address, got.Body)
						}
					}
					for _, address := range addresses(t, pattern, hidden) {
						if strings.Contains(address, "id=") || strings.Contains(address, "run=") {
							got := read(h, address)
							leaks(address, got)
							if !strings.Contains(address, "/runs?") && got.Code != http.StatusNotFound {
								t.Errorf("%s of a hidden run gives %d: %s", address, got.Code, got.Body)
							}
						}
					}
				}
				acts := []url.Values{{"verb": {"pause"}, "queue_name": {secret + "-queue"}}, {"verb": {"set"}, "limit_name": {secret + "-limit"}}, {"verb": {"trigger"}, "schedule": {secret + "-schedule"}}}
				for _, verb := range []string{"pause", "retry", "tag", "delete"} {
					for _, id := range hidden {
						acts = append(acts, url.Values{"verb": {verb}, "run": {id}, "name": {"x"}, "tag_key": {"a.b"}})
					}
				}
				for _, f := range acts {
					got := send(h, "/act", f, "Sec-Fetch-Site", "same-origin")
					leaks(f.Encode(), got)
					if got.Code != http.StatusNotFound && got.Code != http.StatusForbidden {
						t.Errorf("%s on what is hidden gives %d: %s", f.Encode(), got.Code, got.Body)
					}
				}
				for _, verb := range []string{"retry", "fork", "rerun", "delete"} { // a preview or a refusal, which may name others
					for _, id := range shown {
						leaks(verb+" of "+id, send(h, "/act", url.Values{"verb": {verb}, "run": {id}, "from": {"kid"}, "step": {"kid"}, "dry_run": {"yes"}}, "Sec-Fetch-Site", "same-origin"))
					}
				}
			})
		}
	})
}

// read sends a request, and ends the stream if the reply is one.
func read(h http.Handler, address string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := &endless{httptest.NewRecorder(), cancel}
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil).WithContext(ctx))
	return w.ResponseRecorder
}

// endless records a stream until its first flush.
type endless struct {
	*httptest.ResponseRecorder
	end context.CancelFunc
}

func (w *endless) Flush() { w.end() }
