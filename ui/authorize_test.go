package ui_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
	"github.com/seed8ec063be/durable/ui"
)

// Authorize sees what an act leads to: the queue of a move, the ID of a fork, the tag that is set, and what a schedule starts.
func TestAuthorizeSeesWhatAnActLeadsTo(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		var mu sync.Mutex
		var last ui.Action
		h := ui.Handler(e, ui.Authorize(func(_ *http.Request, a ui.Action) (string, error) {
			if !a.Changes() {
				return "ann", nil
			}
			mu.Lock()
			defer mu.Unlock()
			last = a
			if queue := a.Fields["to_queue"]; queue != "" && queue != "mine" || a.Fields["tag_key"] == "tenant.id" || a.Workflow == "approval" && a.Schedule != "" || a.Verb == "fork" && a.Fields["reason"] == "" {
				return "", errors.New("it is not yours")
			}
			return "ann", nil
		}))
		if _, err := approval.Start(within(t), e, "in", durable.ID("later"), durable.Delay(1<<40)); err != nil {
			t.Fatal(err)
		}
		start(t, e, order, "paid", "in")
		for _, s := range []durable.Schedule{
			{Name: "theirs", Workflow: "approval", Cron: "@yearly", Input: "in", Queue: "q", Tags: map[string]string{"tenant.id": "b"}},
			{Name: "ours", Workflow: "order", Cron: "@yearly", Input: "in"},
		} {
			if err := e.SetSchedule(within(t), s); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			code int
			f    []string
		}{
			{http.StatusForbidden, []string{"verb", "move", "run", "later", "to_queue", "theirs"}},
			{http.StatusSeeOther, []string{"verb", "move", "run", "later", "to_queue", "mine"}},
			{http.StatusForbidden, []string{"verb", "tag", "run", "later", "tag_key", "tenant.id", "tag_value", "b"}},
			{http.StatusSeeOther, []string{"verb", "tag", "run", "later", "tag_key", "team.owner", "tag_value", "b"}},
			{http.StatusForbidden, []string{"verb", "fork", "run", "paid", "from", "charge", "new_id", "again"}},
			{http.StatusSeeOther, []string{"verb", "fork", "run", "paid", "from", "charge", "new_id", "again", "reason", "audit"}},
			{http.StatusForbidden, []string{"verb", "trigger", "schedule", "theirs"}},
			{http.StatusForbidden, []string{"verb", "backfill", "schedule", "theirs", "after", "2d", "before", "now"}},
			{http.StatusSeeOther, []string{"verb", "trigger", "schedule", "ours"}},
			{http.StatusNotFound, []string{"verb", "trigger", "schedule", "nobody's"}},
		} {
			post(t, h, c.code, c.f...)
		}
		post(t, h, http.StatusForbidden, "verb", "pause", "schedule", "theirs")
		if last.Workflow != "approval" || last.Queue != "q" || last.Tags["tenant.id"] != "b" || last.Schedule != "theirs" {
			t.Errorf("the action on a schedule is %+v", last)
		}
		postJSON(t, h, http.StatusForbidden, `{"verb": "move", "run": "later", "to_queue": "theirs", "reason": "x", "queue_name": null}`)
		if got := fmt.Sprint(last.Fields); got != "map[reason:x to_queue:theirs]" {
			t.Errorf("the fields of a JSON act are %s", got)
		}
		post(t, h, http.StatusSeeOther, "verb", "signal", "run", "later", "name", "approve", "payload", `"secret"`)
		if got := fmt.Sprint(last.Fields); got != "map[name:approve]" {
			t.Errorf("the fields of a signal are %s", got)
		}
		page, err := e.List(within(t), durable.Filter{Workflow: "approval"}, durable.Page{})
		if err != nil || len(page.Runs) != 1 || page.Runs[0].Queue != "mine" {
			t.Errorf("the runs are %+v, %v", page.Runs, err)
		}
	})
}

// A reset of a schedule is decided by what the schedule starts before and after it.
func TestAuthorizeSeesWhatAResetLeadsTo(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "ui.db"), sqlite.Synchronous(sqlite.Normal))
	if err != nil {
		t.Fatal(err)
	}
	declared := durable.Schedule{Name: "yearly", Workflow: "approval", Cron: "@yearly", Input: "in"}
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{order, approval}, Schedules: []durable.Schedule{declared}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	defer func() {
		cancel()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	}()
	until(t, func() bool {
		all, err := e.Schedules(within(t))
		return err == nil && len(all) == 1
	})
	if err := e.SetSchedule(within(t), durable.Schedule{Name: "yearly", Workflow: "order", Cron: "@yearly", Input: "in"}); err != nil {
		t.Fatal(err)
	}
	only := func(workflow string) http.Handler {
		return ui.Handler(e, ui.Authorize(func(_ *http.Request, a ui.Action) (string, error) {
			if a.Changes() && a.Workflow != workflow {
				return "", errors.New("it is not yours")
			}
			return "ann", nil
		}))
	}
	post(t, only("approval"), http.StatusForbidden, "verb", "reset", "schedule", "yearly")
	post(t, only("order"), http.StatusForbidden, "verb", "reset", "schedule", "yearly")
	post(t, only("order"), http.StatusSeeOther, "verb", "pause", "schedule", "yearly")
	post(t, ui.Handler(e, ui.Authorize(anyone)), http.StatusSeeOther, "verb", "reset", "schedule", "yearly")
}
