package ui_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/schema"
	"github.com/seed8ec063be/durable/ui"
)

// The overview shows how many runs ended, without a stream too, the queues in which runs wait, the versions of the workers and the schema.
func TestOverview(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		for i := range 3 {
			start(t, e, order, fmt.Sprint("good ", i), "in")
		}
		start(t, e, order, "bad", "declined")
		if err := e.SetQueue(within(t), "mail", durable.QueueSettings{MaxExecuting: 1}); err != nil {
			t.Fatal(err)
		}
		var body string
		until(t, func() bool { // events are shown when all earlier transactions have ended, and a worker when its heartbeat is written
			body = send(ui.Handler(e), "/", nil).Body.String()
			return strings.Contains(body, "Versions</dt><dd>v1</dd>") && strings.Contains(body, `<span class="number">4</span> Ended`)
		})
		for _, want := range []string{`<span class="number">1</span> Failed or expired`, `aria-label="Ended per minute: `, fmt.Sprintf("version %d<", len(schema.Postgres())), ">mail</a>", "none waits"} {
			if !strings.Contains(body, want) {
				t.Errorf("the overview has no %q: %s", want, body)
			}
		}
		if n := len(regexp.MustCompile(`<path class="(completed|failed)" d="M`).FindAllString(body, -1)); n != 2 {
			t.Errorf("%d sums are drawn", n)
		}
		some := ui.Handler(e, ui.Visible(func(*http.Request) durable.Filter { return durable.Filter{Workflow: "order"} }))
		if body := send(some, "/", nil).Body.String(); strings.Contains(body, `class="spark"`) || !strings.Contains(body, "not counted here") {
			t.Errorf("the overview of somebody who may not see all runs shows the sums of all: %s", body)
		}
	})
}

// A run that waits in a queue without settings is the oldest that waits.
func TestOldestWaitingInAnyQueue(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		unknown := durable.Define("unknown", func(*durable.Ctx, string) (string, error) { return "", nil })
		if _, err := unknown.Start(within(t), e, "in", durable.InQueue("letters")); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool {
			body := send(ui.Handler(e), "/", nil).Body.String()
			return strings.Contains(body, `href="/runs?queue=letters">letters</a>`) && strings.Contains(body, "without settings") && !strings.Contains(body, "Oldest waiting</dt><dd>none")
		})
		if got := send(ui.Handler(e, ui.Visible(func(*http.Request) durable.Filter { return durable.Filter{Workflow: "order"} })), "/", nil); strings.Contains(got.Body.String(), "letters") {
			t.Error("the queue of hidden runs is shown")
		}
	})
}
