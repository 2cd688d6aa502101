package durable_test

import (
	"errors"
	"testing"

	"github.com/seed8ec063be/durable"
)

// Filter.Held matches a run whose code does not fit its history, until the run continues, and no run that somebody has paused.
func TestListHeldRuns(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(shop)
		client, run := x.waiting(t, s)
		read(x.define(x.charge).Start(within(t), client, 0, durable.ID("paused")))(t)
		read(client.Pause(within(t), "paused", durable.Reason("look first")))(t)
		list := func(f durable.Filter) (ids []string) {
			t.Helper()
			f.Held = true
			for _, r := range read(client.List(within(t), f, durable.Page{}))(t).Runs {
				ids = append(ids, r.ID)
			}
			return ids
		}
		if got := list(durable.Filter{}); len(got) != 0 {
			t.Errorf("before the run is held: %q", got)
		}
		atVersion(t, s, "v2", x.define(asSleep))
		awaitStatus(t, client, "run", durable.StatusPaused)
		for _, c := range []struct {
			f    durable.Filter
			want int
		}{
			{durable.Filter{}, 1},
			{durable.Filter{Workflow: "shop", Status: []durable.Status{durable.StatusPaused}, IDPrefix: "r", Roots: true}, 1},
			{durable.Filter{Workflow: "other"}, 0},
			{durable.Filter{IDPrefix: "p"}, 0},
			{durable.Filter{Tag: "team.owner"}, 0},
			{durable.Filter{Status: []durable.Status{durable.StatusFailed}}, 0},
		} {
			if got := list(c.f); len(got) != c.want || c.want == 1 && got[0] != "run" {
				t.Errorf("%+v matches %q", c.f, got)
			}
		}
		for name, f := range map[string]durable.Filter{"Held": {Held: true}, "RunID": {RunID: []string{run.RunID()}}} {
			if result, err := client.CancelAll(within(t), f, durable.DryRun()); err != nil || result.Matched != 1 {
				t.Errorf("a cancel by %s would reach %+v, %v", name, result, err)
			}
		}
		atVersion(t, s, "v1", x.define(x.charge))
		read(run.Result(within(t)))(t)
		if got := list(durable.Filter{}); len(got) != 0 {
			t.Errorf("after the run has ended: %q", got)
		}
		for _, f := range []durable.Filter{{RunID: []string{run.RunID()}}, {Parent: []string{run.RunID()}}, {Queue: "q", GroupKey: "k"}, {Failure: durable.FailureKey{Workflow: "shop"}}} {
			f.Held = true
			if _, err := client.List(within(t), f, durable.Page{}); !errors.Is(err, durable.ErrInvalidConfig) {
				t.Errorf("%+v gives %v", f, err)
			}
		}
		if groups, err := client.Failures(within(t), durable.Filter{Held: true}); err != nil || len(groups) != 0 {
			t.Errorf("the failures of held runs are %+v, %v", groups, err)
		}
	})
}
