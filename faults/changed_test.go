package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// named is one durable call of the workflow whose code changes.
type named struct{ name, kind string }

// versionA makes a call of each kind, waits for the signal "go", and makes one more call.
var versionA = []named{
	{"first", "step"},
	{"second", "step"},
	{"nap", "sleep"},
	{"parts", "map"},
	{"won", "choice"},
	{"paid", "tx"},
	{"earlier", "receive"},
	{"kid", "child"},
	{"go", "receive"},
	{"last", "step"},
}

var kindsOfCalls = []string{"step", "tx", "sleep", "choice", "receive", "child", "map", "compensation"}

// change is what the code of one run becomes while the run is under way.
type change struct {
	id       string // of the run, and its input, by which version B knows what to be
	calls    []named
	diverged named // the changed call; its kind is the new one. Empty: the run completes
}

// dead as the beginning of a run's ID: in version A its process dies in the step "second".
const dead = "dead "

func changes() (all []change) {
	without := func(name string) []named {
		return slices.DeleteFunc(slices.Clone(versionA), func(c named) bool { return c.name == name })
	}
	as := func(i int, c named) []named {
		calls := slices.Clone(versionA)
		calls[i] = c
		return calls
	}
	backwards := slices.Clone(versionA)
	slices.Reverse(backwards)
	all = []change{
		{id: "same", calls: versionA},
		{id: "removed", calls: without("second")},
		{id: "wait removed", calls: without("go")},
		{id: "added", calls: slices.Insert(slices.Clone(versionA), 1, named{"between", "step"})},
		{id: "reordered", calls: backwards},
		{id: "renamed", calls: as(1, named{"zweites", "step"})},
		{id: dead + "same", calls: versionA},
		{id: dead + "removed", calls: without("second")},
	}
	for i, c := range versionA {
		for _, kind := range kindsOfCalls {
			if kind == c.kind || c.name == "last" {
				continue
			}
			id := fmt.Sprintf("%s: %s to %s", c.name, c.kind, kind)
			changed := named{c.name, kind}
			all = append(all, change{id, as(i, changed), changed})
			if c.name == "second" { // recorded as started only
				all = append(all, change{dead + id, as(i, changed), changed})
			}
		}
	}
	return all
}

var kid = durable.Define("kid", func(c *durable.Ctx, in int) (int, error) {
	return c.Step("grow", func(context.Context) (int, error) { return in + 1, nil })
})

// changing is the workflow in version A or B. It returns what each call returned.
func changing(l ledger, db database, version string) *durable.Workflow[string, map[string]int] {
	plans := make(map[string][]named)
	for _, c := range changes() {
		plans[c.id] = c.calls
	}
	return durable.Define("changing", func(c *durable.Ctx, id string) (map[string]int, error) {
		calls := plans[id]
		if version == "A" {
			calls = versionA
		}
		answers := make(map[string]int)
		for _, call := range calls {
			v, err := makeCall(c, call, l, db, version)
			if err != nil {
				return nil, err
			}
			answers[call.name] = v
		}
		return answers, nil
	}, durable.OnDrift(durable.DriftContinues))
}

func makeCall(c *durable.Ctx, call named, l ledger, db database, version string) (int, error) {
	do := func(ctx context.Context) (int, error) {
		l.did(ctx, c.ID(), version+" "+call.name)
		if version == "A" && call.name == "second" && strings.HasPrefix(c.ID(), dead) {
			say("dying", c.ID())
			select {}
		}
		return len(call.name), nil
	}
	switch call.kind {
	case "step":
		return c.Step(call.name, do)
	case "tx":
		return 0, txDo(c, db, call.name)
	case "sleep":
		return 0, c.Sleep(call.name, time.Millisecond)
	case "choice":
		i, _, err := durable.Any(c, call.name, durable.KeepLosers, c.Go("branch of "+call.name, func(*durable.Ctx) (int, error) { return 1, nil }))
		return i, err
	case "receive":
		return c.Receive[int](call.name)
	case "child":
		return c.Child(call.name, kid, 5)
	case "map":
		out, err := c.Map(call.name, []int{3, 4}, func(ctx context.Context, in int) (int, error) {
			_, err := do(ctx)
			return in, err
		})
		sum := 0
		for _, v := range out {
			sum += v
		}
		return sum, err
	default:
		return 0, c.Compensate(call.name, func(ctx context.Context) error {
			_, err := do(ctx)
			return err
		})
	}
}

func init() {
	scenarios["version"] = func(ctx context.Context, j *job, s durable.Store) error {
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{changing(j.Ledger, j.DB, j.Point), kid}})
		if err != nil {
			return err
		}
		return e.Run(ctx)
	}
}

// Row 27: the code changes under live runs, which wait, or whose process died in a step.
// Calls that are removed, new, renamed or in another order are no harm; a call whose kind
// changed is an error that names it, and returns no value.
func TestRow27_CodeChangedUnderALiveRun(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l := newLedger(t)
		all := changes()
		client := engineOn(t, db.openIn(t), durable.Config{})
		w := changing(l, db, "none")
		var items []durable.StartItem[string]
		for _, c := range all {
			items = append(items, durable.StartItem[string]{ID: c.id, Input: c.id})
		}
		runs, err := w.StartMany(bounded(t), client, items)
		if err != nil {
			t.Fatal(err)
		}
		old := spawn(t, job{Scenario: "version", DB: db, Ledger: l, Point: "A"})
		parked := 0
		for _, c := range all {
			if !strings.HasPrefix(c.id, dead) {
				parked++
				if err := client.Signal(bounded(t), c.id, "earlier", 7); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range len(all) - parked {
			old.expect("dying")
		}
		for _, c := range all {
			if strings.HasPrefix(c.id, dead) {
				await(t, "the started step", func() bool { return history(t, client, c.id)["second"].Status == "started" })
				continue
			}
			await(t, "the wait of "+c.id+" after its child", func() bool {
				h := history(t, client, c.id)
				return h["kid"].Status == "completed" && h["go"].Status == "started" && info(t, client, c.id).Status == durable.StatusWaiting
			})
		}
		old.kill()

		spawn(t, job{Scenario: "version", DB: db, Ledger: l, Point: "B"})
		for _, c := range all {
			for _, name := range []string{"earlier", "go"} {
				// A run that does not wait any more may have ended.
				if err := client.Signal(bounded(t), c.id, name, 7); err != nil && !errors.Is(err, durable.ErrState) {
					t.Errorf("%s: %v", c.id, err)
				}
			}
		}
		completed, diverged := 0, 0
		for i, c := range all {
			answers, err := runs[i].Result(bounded(t))
			if c.diverged.name != "" {
				was := versionA[slices.IndexFunc(versionA, func(n named) bool { return n.name == c.diverged.name })].kind
				mustFail(t, err, durable.ErrDiverged, fmt.Sprintf("%q", c.diverged.name), c.id, "recorded as a "+was, "asks for a "+c.diverged.kind)
				if n := len(l.of(t, c.id, "B "+c.diverged.name)); n > 0 {
					t.Errorf("%s: the changed call's function ran %d times", c.id, n)
				}
				diverged++
				continue
			}
			completed++
			want := map[string]int{"parts": 7, "won": 0, "paid": 0, "nap": 0, "earlier": 7, "kid": 6, "go": 7}
			for _, call := range c.calls {
				if v, had := want[call.name]; err != nil || answers[call.name] != v && had || !had && answers[call.name] != len(call.name) {
					t.Errorf("%s: %s answers %d, %v", c.id, call.name, answers[call.name], err)
				}
			}
			if len(answers) != len(c.calls) {
				t.Errorf("%s: %v", c.id, answers)
			}
		}
		// What version A recorded never ran again.
		ranNew := make(map[string]bool)
		for key, n := range l.counts(t) {
			id, step, _ := strings.Cut(key, "/")
			version, name, _ := strings.Cut(step, " ")
			if version == "A" {
				if name != "parts" && n != 1 {
					t.Errorf("%s ran %d times", key, n)
				}
				continue
			}
			ranNew[id+"/"+name] = true
			again := len(l.of(t, id, "A "+name)) > 0 && !(strings.HasPrefix(id, dead) && name == "second")
			if again {
				t.Errorf("%s was recorded by version A and ran again", key)
			}
		}
		for _, key := range []string{"added/between", "renamed/zweites", "same/last"} {
			if !ranNew[key] {
				t.Errorf("%s is new, and was not executed", key)
			}
		}
		t.Logf("changes=%d parked=%d killed_in_a_step=%d completed=%d diverged=%d rerun=0", len(all), parked, len(all)-parked, completed, diverged)
	})
}
