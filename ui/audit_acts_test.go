package ui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// Each act of a form whose reason was asked for is in the audit with the actor of Authorize and this reason.
func TestEachActIsInTheAudit(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		start(t, e, approval, "waits", "in")
		daily := approval.Schedule("in", durable.Schedule{Name: "daily", Cron: "@daily"})
		if err := e.SetSchedule(within(t), daily); err != nil {
			t.Fatal(err)
		}
		if err := e.SetQueue(within(t), "mail", durable.QueueSettings{MaxExecuting: 1}); err != nil {
			t.Fatal(err)
		}
		for _, form := range [][]string{
			{"verb", "pause", "run", "waits"},
			{"verb", "resume", "run", "waits"},
			{"verb", "signal", "run", "waits", "name", "go", "payload", "1"},
			{"verb", "tag", "run", "waits", "tag_key", "team.owner", "tag_value", "pay"},
			{"verb", "expire", "run", "waits", "timeout", "2h"},
			{"verb", "trigger", "schedule", "daily"},
			{"verb", "backfill", "schedule", "daily", "after", "2d", "before", "1d"},
		} {
			post(t, h, http.StatusSeeOther, append(form, "reason", "because "+form[1])...)
		}
		if err := e.DeleteQueue(within(t), "mail", durable.Actor("bob"), durable.Reason("because delete")); err != nil {
			t.Fatal(err)
		}
		var acts struct {
			Runs []struct{ Verb, Target, Name, Actor, Reason, New string }
		}
		var got []string
		want := []string{"ann pause run ", "ann resume run ", "ann signal run go", "ann tag run team.owner=pay", "ann timeout run later", "ann trigger run daily", "ann backfill run daily", "bob delete queue "}
		until(t, func() bool { // events are shown when all earlier transactions on the server have ended
			acts.Runs = nil
			if err := json.Unmarshal(send(h, "/api/v1/audit", nil).Body.Bytes(), &acts); err != nil {
				t.Fatal(err)
			}
			got = nil
			for _, a := range slices.Backward(acts.Runs) {
				if a.Reason != "because "+a.Verb && (a.Verb != "timeout" || a.Reason != "because expire") {
					t.Errorf("the act is %+v", a)
				}
				if a.Verb == "timeout" {
					a.New = "later"
				}
				got = append(got, fmt.Sprint(a.Actor, " ", a.Verb, " ", a.Target, " ", a.New))
			}
			return len(got) >= len(want)
		})
		if !slices.Equal(got, want) {
			t.Errorf("the acts are\n%q, want\n%q", got, want)
		}
		for _, page := range []string{"/audit", "/events"} {
			if body := send(h, page, nil).Body.String(); !strings.Contains(body, "because signal") || !strings.Contains(body, "because delete") || !strings.Contains(body, "team.owner=pay") || strings.Contains(body, `href="/run?id=mail"`) {
				t.Errorf("%s is %s", page, body)
			}
		}
		roots := ui.Handler(e, ui.Authorize(anyone), ui.Visible(func(*http.Request) durable.Filter { return durable.Filter{Roots: true} }))
		if body := send(roots, "/events", nil).Body.String(); !strings.Contains(body, "because signal") || strings.Contains(body, "because delete") {
			t.Errorf("whoever sees some runs only sees the deletion of a queue: %s", body)
		}
	})
}
