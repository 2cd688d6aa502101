package browsertest

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

// hostileName is a text that would be an element, an attribute or a template.
const hostileName = `<img src=x onerror="window.hacked=1">'&{{.}}</script>`

// Everything that people name has a hostile name.
const (
	named    = "x " + hostileName
	stepName = "step " + hostileName
)

// shownStep is the name of the step as histories show it: its slash is no scope.
var shownStep = strings.ReplaceAll(stepName, "/", "%2F")

var (
	bank = durable.NewLimit("limit "+hostileName, durable.Concurrent(5))
	// hostileWorkflow makes a call that fails if the input is "fail", and waits for a signal otherwise.
	hostileWorkflow = durable.Define("workflow "+hostileName, func(c *durable.Ctx, in string) (string, error) {
		if _, err := c.Step(stepName, func(context.Context) (string, error) {
			if in == "fail" {
				return "", errors.New("refused " + hostileName)
			}
			return in, nil
		}, bank.Permit(durable.LimitKey("key "+hostileName)), durable.Retry(durable.NoRetry)); err != nil {
			return "", err
		}
		if in == "done" {
			return in, nil
		}
		return c.Receive[string]("signal " + hostileName)
	}, durable.Queue("queue "+hostileName))
	hostileGraph = durable.DefineGraph("graph "+hostileName, func(g *durable.Graph[string]) *durable.Node[string] {
		return g.Step("node "+hostileName, func(context.Context, *durable.NodeInput) (string, error) { return "", nil })
	})
)

// hostile returns an engine in which everything has a hostile name.
func hostile(t *testing.T) *durable.Engine {
	t.Helper()
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "ui.db"), sqlite.Synchronous(sqlite.Normal))
	if err != nil {
		t.Fatal(err)
	}
	e, err := durable.New(store, durable.Config{
		Workflows: []durable.Definition{hostileWorkflow, hostileGraph}, Name: "worker " + hostileName, Version: "v " + hostileName,
		QueueSettings: map[string]durable.QueueSettings{"queue " + hostileName: {MaxExecuting: 50}},
		Schedules:     []durable.Schedule{hostileWorkflow.Schedule("done", durable.Schedule{Name: "schedule " + hostileName, Every: 24 * time.Hour})},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, store.Close()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// act is an act of a page: the form with the verb is filled in and sent.
type act struct {
	path   string // of the page
	target string // the value of the form's hidden field; empty: the page has one form with the verb
	verb   string
	fields map[string]string
	holds  func() bool // what the act has done
}

// send fills the form of an act in, sends it, waits for the next page, and then for what the act does.
func (a *act) send(t *testing.T, ctx context.Context, address string) {
	t.Helper()
	form := `[...document.querySelectorAll("main form[method=post]")].find(f => [...f.elements].some(e => e.name == "verb" && e.value == ` + strconv.Quote(a.verb) + `)` +
		` && (` + strconv.Quote(a.target) + ` == "" || [...f.elements].some(e => e.type == "hidden" && e.value == ` + strconv.Quote(a.target) + `)))`
	do(t, ctx, chromedp.Navigate("http://"+address+a.path), chromedp.WaitVisible("main"))
	if !eval[bool](t, ctx, form+` !== undefined`) {
		t.Fatalf("%s has no form for %s: %s", a.path, a.verb, eval[string](t, ctx, `document.querySelector("main").innerHTML`))
	}
	for name, value := range a.fields {
		do(t, ctx, chromedp.Evaluate(`(e => { if (e.type == "checkbox") { e.checked = true } else { e.value = `+strconv.Quote(value)+` } })(`+form+`.elements[`+strconv.Quote(name)+`])`, nil))
	}
	do(t, ctx, chromedp.Evaluate(`(f => { window.before = true; for (let d = f.closest("details"); d; d = d.parentElement.closest("details")) d.open = true;
		(f.querySelector("button[name=verb][value=`+a.verb+`]") || f.querySelector("button:not([name])")).click() })(`+form+`)`, nil))
	until(t, ctx, `window.before === undefined && document.querySelector("main") !== null`)
	if refused := eval[string](t, ctx, `document.querySelector("[role=alert]")?.textContent ?? ""`); refused != "" {
		t.Fatalf("%s on %s is refused: %s", a.verb, a.path, refused)
	}
	for deadline := time.Now().Add(time.Minute); !a.holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s on %s has not done what it says", a.verb, a.path)
		}
	}
	if eval[bool](t, ctx, `window.hacked !== undefined || document.querySelector("main img, main script") !== null`) {
		t.Errorf("%s makes markup of hostile text", a.path)
	}
}

// Each act of the pages reaches the row, with its actor and its reason, whatever the names are.
func TestEveryActInTheBrowser(t *testing.T) {
	t.Parallel()
	e := hostile(t)
	address, stop := serve(t, e, "127.0.0.1:0")
	defer stop()
	within, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const reason = "because " + hostileName
	startRun := func(name, in string, opts ...durable.StartOption) string {
		t.Helper()
		id := name + " " + hostileName
		if _, err := hostileWorkflow.Start(within, e, in, append(opts, durable.ID(id), durable.Tag("tag.key", named))...); err != nil {
			t.Fatal(err)
		}
		return id
	}
	get := func(id string) *durable.RunInfo {
		t.Helper()
		r, err := e.Get(within, id)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	reach := func(id string, status durable.Status) string {
		t.Helper()
		for get(id).Status != status {
			if within.Err() != nil {
				t.Fatalf("%s is never %s", id, status)
			}
		}
		return id
	}
	waiting := func(name string) string { return reach(startRun(name, "wait"), durable.StatusWaiting) }
	ended := func(name string) string { return reach(startRun(name, "done"), durable.StatusCompleted) }
	failed := func(name string) string { return reach(startRun(name, "fail"), durable.StatusFailed) }
	delayed := func(name string) string { return startRun(name, "wait", durable.Delay(time.Hour)) }
	runPage := func(id string) string { return "/run?id=" + url.QueryEscape(id) }
	because := map[string]string{"reason": reason}
	repaired := func(id string, verb durable.Verb) func() bool {
		return func() bool {
			all, err := e.Generations(within, id)
			return err == nil && len(all) == 2 && all[1].Verb == verb && all[1].Actor == "ann" && all[1].Reason == reason
		}
	}
	if _, err := hostileGraph.Start(within, e, "in", durable.ID("graph "+hostileName)); err != nil {
		t.Fatal(err)
	}
	onRun := func(id, verb string, fields map[string]string, holds func(r *durable.RunInfo) bool) act {
		return act{path: runPage(id), verb: verb, fields: fields, holds: func() bool { return holds(get(id)) }}
	}
	paused, forked, overridden, skipped, rerun, retried, deleted := waiting("pause"), ended("fork"), ended("override"), failed("skip"), ended("rerun"), failed("retry"), ended("delete")
	queue := func(holds func(q *durable.QueueInfo) bool) func() bool {
		return func() bool {
			all, err := e.Queues(within)
			return err == nil && len(all) == 1 && holds(&all[0])
		}
	}
	limit := func(holds func(l *durable.LimitInfo) bool) func() bool {
		return func() bool {
			all, err := e.Limits(within)
			return err == nil && len(all) == 1 && holds(&all[0])
		}
	}
	schedule := func(holds func(s *durable.ScheduleInfo) bool) func() bool {
		return func() bool {
			all, err := e.Schedules(within)
			return err == nil && len(all) == 1 && holds(&all[0])
		}
	}
	worker := func(quiet bool) func() bool {
		return func() bool {
			all, err := e.Workers(within)
			return err == nil && len(all) == 1 && all[0].Quiet == quiet && all[0].LastChange.By == "ann" && all[0].LastChange.Reason == reason
		}
	}
	scheduled := func(least int) func() bool {
		return func() bool {
			page, err := e.List(within, durable.Filter{Workflow: "workflow " + hostileName, Roots: true}, durable.Page{Limit: 1000})
			n := 0
			for _, r := range page.Runs {
				if len(r.ID) > 9 && r.ID[:9] == "schedule " {
					n++
				}
			}
			return err == nil && n >= least
		}
	}
	var workerID string
	for workerID == "" {
		if all, err := e.Workers(within); err != nil {
			t.Fatal(err)
		} else if len(all) > 0 {
			workerID = all[0].ID
		}
	}
	ctx := browser(t, at(address, "/", ""), 1280, 800, false)
	for _, a := range []act{
		onRun(paused, "pause", because, func(r *durable.RunInfo) bool { return r.PausedBy == "ann" && r.Reason == reason }),
		onRun(paused, "resume", because, func(r *durable.RunInfo) bool { return r.Status != durable.StatusPaused }),
		onRun(waiting("cancel"), "cancel", because, func(r *durable.RunInfo) bool {
			return r.Status == durable.StatusCancelled && *r.Cancellation == durable.Cancellation{Reason: reason, Actor: "ann", At: r.Cancellation.At}
		}),
		onRun(waiting("terminate"), "terminate", because, func(r *durable.RunInfo) bool {
			return r.Status == durable.StatusCancelled && r.Cancellation.Actor == "ann" && r.Cancellation.Reason == reason
		}),
		onRun(waiting("signal"), "signal", map[string]string{"name": "signal " + hostileName, "payload": `"yes"`}, func(r *durable.RunInfo) bool { return string(r.Output) == `"yes"` }),
		onRun(waiting("tag"), "tag", map[string]string{"tag_key": "tag.other", "tag_value": named}, func(r *durable.RunInfo) bool { return r.Tags["tag.other"] == named }),
		onRun(waiting("expire"), "expire", map[string]string{"timeout": "2h"}, func(r *durable.RunInfo) bool { return time.Until(r.Deadline) > time.Hour }),
		onRun(delayed("prioritize"), "prioritize", map[string]string{"priority": "2", "reason": reason}, func(r *durable.RunInfo) bool { return r.Priority == 2 }),
		onRun(delayed("move"), "move", map[string]string{"to_queue": "other " + hostileName, "reason": reason}, func(r *durable.RunInfo) bool { return r.Queue == "other "+hostileName }),
		onRun(forked, "fork", map[string]string{"from": shownStep, "new_id": "forked " + hostileName, "reason": reason}, func(*durable.RunInfo) bool {
			r, err := e.Get(within, "forked "+hostileName)
			return err == nil && r.Status == durable.StatusCompleted
		}),
		{path: runPage(retried), verb: "retry", fields: because, holds: repaired(retried, durable.VerbRetry)},
		{path: runPage(overridden), target: shownStep, verb: "override", fields: map[string]string{"value": `"else"`, "reason": reason}, holds: repaired(overridden, durable.VerbOverride)},
		{path: runPage(skipped), target: shownStep, verb: "skip", fields: map[string]string{"value": `"done"`, "reason": reason}, holds: repaired(skipped, durable.VerbSkip)},
		{path: runPage(rerun), target: shownStep, verb: "rerun", fields: because, holds: repaired(rerun, durable.VerbRerun)},
		{path: runPage(deleted), verb: "delete", fields: because, holds: func() bool {
			_, err := e.Get(within, deleted)
			return errors.Is(err, durable.ErrNotFound)
		}},
		{path: "/queues", verb: "pause", fields: because, holds: queue(func(q *durable.QueueInfo) bool { return q.PausedBy == "ann" && q.PauseReason == reason })},
		{path: "/queues", verb: "resume", fields: because, holds: queue(func(q *durable.QueueInfo) bool { return q.PausedAt.IsZero() && q.LastChange.Reason == reason })},
		{path: "/queues", verb: "set", fields: map[string]string{"max_executing": "7", "reason": reason}, holds: queue(func(q *durable.QueueInfo) bool {
			return q.Settings.MaxExecuting == 7 && q.SetBy == "ann" && q.SetReason == reason
		})},
		{path: "/queues", verb: "reset", fields: because, holds: queue(func(q *durable.QueueInfo) bool { return q.Settings.MaxExecuting == 50 })},
		{path: "/limits", verb: "set", fields: map[string]string{"concurrent": "3", "reason": reason}, holds: limit(func(l *durable.LimitInfo) bool { return l.Concurrent == 3 && l.SetBy == "ann" && l.SetReason == reason })},
		{path: "/limits", verb: "reset", fields: because, holds: limit(func(l *durable.LimitInfo) bool { return l.Concurrent == 5 })},
		{path: "/schedules", verb: "pause", fields: because, holds: schedule(func(s *durable.ScheduleInfo) bool { return !s.PausedAt.IsZero() })},
		{path: "/schedules", verb: "resume", fields: because, holds: schedule(func(s *durable.ScheduleInfo) bool { return s.PausedAt.IsZero() })},
		{path: "/schedules", verb: "trigger", holds: scheduled(1)},
		{path: "/schedules", verb: "backfill", fields: map[string]string{"after": "3d", "before": "now"}, holds: scheduled(3)},
		{path: "/workers", target: workerID, verb: "quiet", fields: because, holds: worker(true)},
		{path: "/workers", target: workerID, verb: "resume", fields: because, holds: worker(false)},
	} {
		a.send(t, ctx, address)
	}
	for _, path := range []string{"/", "/runs", "/queues", "/limits", "/schedules", "/workers", "/events", "/audit", "/runs?queue=" + url.QueryEscape("queue "+hostileName), runPage("graph " + hostileName), runPage(retried)} {
		do(t, ctx, chromedp.Navigate("http://"+address+path), chromedp.WaitVisible("main"))
		if !eval[bool](t, ctx, `document.body.textContent.includes("onerror=")`) {
			t.Errorf("%s shows no hostile name", path)
		}
		if eval[bool](t, ctx, `window.hacked !== undefined || document.querySelector("main img, main script") !== null`) {
			t.Errorf("%s makes markup of hostile names", path)
		}
	}
}
