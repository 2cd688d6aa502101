package ui_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

var (
	leaf = durable.Define("leaf", func(*durable.Ctx, int) (int, error) { return 1, nil })
	// large has many children or many calls. It waits for its children: the end of their parent would cancel them.
	large = durable.Define("large", func(c *durable.Ctx, in [2]int) (int, error) {
		children := make([]*durable.Child[int], in[0])
		for i := range children {
			var err error
			if children[i], err = c.StartChild(fmt.Sprint("kid ", i), leaf, i); err != nil {
				return 0, err
			}
		}
		for _, child := range children {
			if _, err := child.Wait(); err != nil {
				return 0, err
			}
		}
		_, err := c.Map("items", make([]int, in[1]), func(context.Context, int) (int, error) { return 1, nil })
		return 0, err
	})
	flaky = durable.Define("flaky", func(c *durable.Ctx, _ string) (string, error) {
		return c.Step("call", func(ctx context.Context) (string, error) {
			if durable.Attempt(ctx) == 1 {
				return "", errors.New("busy")
			}
			return "done", nil
		}, durable.Retry(durable.Exponential(30*time.Millisecond, 30*time.Millisecond, 3)))
	})
)

// A page shows the newest of many children, and leads to all of them in pages.
func TestRunWithManyChildren(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		const children = 75
		if _, err := large.Call(within(t), e, [2]int{children, 0}, durable.ID("large")); err != nil {
			t.Fatal(err)
		}
		run, err := e.Get(within(t), "large")
		if err != nil {
			t.Fatal(err)
		}
		h := ui.Handler(e)
		body := send(h, runPage("large"), nil).Body.String()
		all := "/runs?parent=" + run.RunID
		if n := strings.Count(body, "<li><a"); n != 60 || !strings.Contains(body, all) {
			t.Errorf("the page shows %d children: %s", n, body)
		}
		seen := 0
		for address := all; address != ""; {
			body := send(h, address, nil).Body.String()
			seen += strings.Count(body, `class="status`)
			_, rest, more := strings.Cut(body, `rel="next" href="`)
			address, _, _ = strings.Cut(rest, `"`)
			if address = strings.ReplaceAll(address, "&amp;", "&"); !more {
				address = ""
			}
		}
		if seen != children {
			t.Errorf("the pages list %d children", seen)
		}
		if got := send(h, "/runs?parent=large", nil); got.Code != http.StatusBadRequest {
			t.Errorf("a parent that is no UUID gives %d", got.Code)
		}
	})
}

// The page of a run without a declared graph draws its course, with links to its children, and how long it waited to begin.
func TestCourseIsDrawn(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		if _, err := wordy.Call(within(t), e, "", durable.ID("wordy")); err != nil {
			t.Fatal(err)
		}
		if _, err := large.Call(within(t), e, [2]int{2, 2}, durable.ID("large")); err != nil {
			t.Fatal(err)
		}
		run, err := e.Tree(within(t), "large")
		if err != nil || len(run.Children) != 2 {
			t.Fatal(run, err)
		}
		h := ui.Handler(e)
		body := send(h, runPage("large"), nil).Body.String()
		_, course, _ := strings.Cut(body, "<h2>Course")
		course, _, _ = strings.Cut(course, "</svg>")
		for _, want := range []string{">kid 0</text>", ">items</text>", "completed 2 of 2", `<a href="/run?id=` + run.Children[0].ID} {
			if !strings.Contains(course, want) {
				t.Errorf("the course has no %q: %s", want, course)
			}
		}
		if body := send(h, runPage("wordy"), nil).Body.String(); !strings.Contains(body, "<title>branch/short → branch/long</title>") {
			t.Errorf("the calls of a branch have no arrow: %s", body)
		}
		if strings.Contains(course, "items/0") {
			t.Errorf("the items of a Map are boxes: %s", course)
		}
		start(t, e, order, "single", "in")
		if body := send(h, runPage("single"), nil).Body.String(); strings.Contains(body, "<h2>Course") {
			t.Errorf("a single call is drawn as a course: %s", body)
		}
		if _, err := repairPreview.Start(within(t), e, "in", durable.ID("plan")); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool { return strings.Contains(send(h, runPage("plan"), nil).Body.String(), "<h2>Graph") })
		if body := send(h, runPage("plan"), nil).Body.String(); strings.Contains(body, "<h2>Course") {
			t.Errorf("a declared graph is drawn as a course: %s", body)
		}
		if _, err := order.Start(within(t), e, "in", durable.ID("later"), durable.Delay(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if body := send(h, runPage("later"), nil).Body.String(); !strings.Contains(body, `<rect class="queued"`) || !strings.Contains(body, "Nothing is recorded yet") {
			t.Errorf("a run that waits to begin is drawn as %s", body)
		}
	})
}

// The wait for the next attempt is a bar of its own, also after the step has completed.
func TestBackoffIsDrawn(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		if _, err := flaky.Call(within(t), e, "", durable.ID("flaky")); err != nil {
			t.Fatal(err)
		}
		history, err := e.History(within(t), "flaky")
		if err != nil || len(history) != 1 {
			t.Fatal(history, err)
		}
		if f := history[0].FirstFailure; f == nil || !f.NextAt.After(f.EndedAt) || history[0].EndedAt.Before(f.NextAt) {
			t.Errorf("the first failure is %+v of %+v", f, history[0])
		}
		body := send(ui.Handler(e), runPage("flaky"), nil).Body.String()
		failed, backoff, completed := strings.Index(body, `<rect class="failed"`), strings.Index(body, `<rect class="backoff"`), strings.Index(body, `<rect class="completed"`)
		if failed < 0 || backoff < failed || completed < backoff {
			t.Errorf("the bars are not a failure, a backoff and a completion: %s", body)
		}
	})
}

// A graph is drawn with the state of each node, and leads to its children.
func TestGraphIsDrawn(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		run, err := repairPreview.Start(within(t), e, "in", durable.ID("plan"))
		if err != nil {
			t.Fatal(err)
		}
		h := ui.Handler(e)
		var info *durable.GraphInfo
		until(t, func() bool {
			info, err = e.Graph(within(t), "plan")
			return err == nil && info.Nodes[0].State == durable.NodeRunning
		})
		body := send(h, runPage("plan"), nil).Body.String()
		if !strings.Contains(body, `<svg class="graph"`) || !strings.Contains(body, `<a href="/run?id=`+info.Nodes[0].Child+`">`) || !strings.Contains(body, `<g class="running">`) {
			t.Errorf("the page of a graph is %s", body)
		}
		if err := e.Signal(within(t), info.Nodes[0].Child, "approve", "yes"); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Result(within(t)); err != nil {
			t.Fatal(err)
		}
		if _, err := repairPreview.Start(within(t), e, "in", durable.ID("plan")); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool { return strings.Contains(send(h, runPage("plan"), nil).Body.String(), "<h2>Graph") })
		if body := send(h, runPage("plan"), nil).Body.String(); !strings.Contains(body, `<g class="completed">`) {
			t.Errorf("the page of a completed graph is %s", body)
		}
	})
}

// Links have the values of the run, escaped; templates that cannot work are refused.
func TestLinks(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		id := `order 1"&x=<b>`
		start(t, e, order, id, "in")
		body := send(ui.Handler(e, ui.Link("Logs", "https://logs.example/{workflow}?id={id}&from={from}"), ui.Link("Traces", "/traces/{run_id}")), runPage(id), nil).Body.String()
		if want := `<a href="https://logs.example/order?id=` + strings.ReplaceAll(url.QueryEscape(id), "+", "%20") + `&amp;from=1`; !strings.Contains(body, want) || !strings.Contains(body, `<a href="/traces/0`) {
			t.Errorf("the page has not %s: %s", want, body)
		}
		for _, template := range []string{"javascript:alert(1)", "//other.example/{id}", "https://logs.example/{secret}", "logs"} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("the template %q is accepted", template)
					}
				}()
				ui.Handler(e, ui.Link("Logs", template))
			}()
		}
	})
}
