package ui_test

import (
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// busy has a step that runs until somebody interrupts it.
var busy = durable.Define("busy", func(c *durable.Ctx, _ string) (string, error) {
	if _, err := c.Step("prepare", func(context.Context) (string, error) { return "prepared", nil }); err != nil {
		return "", err
	}
	return c.Step("work", func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
})

// A repair of a live run waits for its running steps as long as a request may last. Then the message names the field that interrupts them, which the forms have.
func TestARepairInterruptsRunningSteps(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		if _, err := busy.Start(within(t), e, "in", durable.ID("busy")); err != nil {
			t.Fatal(err)
		}
		defer func() { // else the worker waits for the step
			if _, err := e.Terminate(within(t), "busy"); err != nil {
				t.Error(err)
			}
		}()
		working := func() bool {
			all, err := e.History(within(t), "busy")
			return err == nil && len(all) == 2 && all[1].EndedAt.IsZero()
		}
		until(t, working)
		if page := send(h, runPage("busy"), nil).Body.String(); strings.Count(page, `name="interrupt_steps"`) < 4 {
			t.Errorf("the forms of the page are %s", page)
		}
		ctx, cancel := context.WithTimeout(within(t), 3*time.Second) // the repair must have begun to wait by then, also on a machine that stands still meanwhile
		defer cancel()
		f := url.Values{"verb": {"rerun"}, "run": {"busy"}, "step": {"prepare"}}
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/act", strings.NewReader(f.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		got := httptest.NewRecorder()
		h.ServeHTTP(got, r)
		if text := html.UnescapeString(got.Body.String()); got.Code != http.StatusConflict || !strings.Contains(text, `"work" still runs`) || !strings.Contains(text, "the field interrupt_steps") {
			t.Errorf("a repair that has waited for long enough gives %d: %s", got.Code, text)
		}
		until(t, working)
		post(t, h, http.StatusSeeOther, "verb", "rerun", "run", "busy", "step", "prepare", "interrupt_steps", "yes")
		if all, err := e.Generations(within(t), "busy"); err != nil || len(all) != 2 || all[1].Actor != "ann" {
			t.Errorf("the generations are %+v, %v", all, err)
		}
		if page := send(h, runPage("busy"), nil).Body.String(); !strings.Contains(page, `name="interrupt_steps"`) {
			t.Errorf("the page is %s", page)
		}
	})
}
