package faults

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Row 23: names are kept byte for byte, or refused.
func TestRow23_Names(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		names := []string{
			`it's "quoted"`, "100%s %d %v", "trailing ", "trailing", " leading", "😀👩‍👩‍👧", "é", "e\u0301", "Ä", "ä", "a/b", "a\\b",
			"'; DROP TABLE durable_run; --", "$1", "{}", "NULL", strings.Repeat("x", durable.MaxNameBytes), strings.Repeat("é", durable.MaxNameBytes/2), "\u2028", "\ufeff",
		}
		w := durable.Define(`work "flow" 100%s 😀 `, func(c *durable.Ctx, _ int) ([]string, error) {
			var keys []string
			for _, name := range names {
				v, err := c.Step(name, func(context.Context) (string, error) { return "<" + name + ">", nil })
				if err != nil {
					return nil, err
				}
				keys = append(keys, v)
			}
			return keys, nil
		}, durable.Queue("que'ue %s "))
		e := engineOn(t, db.openIn(t), durable.Config{}, w)
		runEngine(t, e)
		ids := make(map[string]bool)
		for _, name := range names {
			run := start(t, e, w, 1, durable.ID(name))
			ids[run.RunID()] = true
			if run.ID() != name {
				t.Errorf("%q became %q", name, run.ID())
			}
		}
		if len(ids) != len(names) {
			t.Errorf("%d runs for %d IDs", len(ids), len(names))
		}
		for _, name := range names {
			out, err := result(t, e, w, name)
			if err != nil || len(out) != len(names) {
				t.Fatalf("%q: %v", name, err)
			}
			recorded := history(t, e, name)
			for i, step := range names {
				if row := recorded[shownAs(step)]; out[i] != "<"+step+">" || row.Status != "completed" {
					t.Errorf("%q in %q: %q, %+v", step, name, out[i], row)
				}
			}
			if at := info(t, e, name); at.Workflow != w.Name() || at.Queue != "que'ue %s " {
				t.Errorf("%+v", at)
			}
		}
		refused := 0
		for _, name := range []string{strings.Repeat("x", 64<<10), strings.Repeat("x", durable.MaxNameBytes+1), "tab\t", "line\n", "nul\x00", "del\x7f", "bad\xc3"} {
			_, err := w.Start(bounded(t), e, 1, durable.ID(name))
			mustFail(t, err, durable.ErrInvalidName)
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			refused++
		}
		t.Logf("names=%d distinct_runs=%d steps=%d refused=%d", len(names), len(ids), len(names)*len(names), refused)
	})
}

// Row 24: a stored output that no longer decodes, and a step whose kind has changed,
// are errors that name the run, the step and both sides.
func TestRow24_OutputThatNoLongerDecodes(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.openIn(t)
		park := durable.Retry(durable.Fixed(time.Hour, 2))
		older := durable.Define("evolving", func(c *durable.Ctx, in string) (string, error) {
			if _, err := c.Step("charge", func(context.Context) (string, error) { return "forty-one", nil }); err != nil {
				return "", err
			}
			return "", c.Do("later", func(context.Context) error { return errors.New("not now") }, park)
		})
		newer := durable.Define("evolving", func(c *durable.Ctx, in string) (string, error) {
			switch in {
			case "type":
				_, err := c.Step("charge", func(context.Context) (int, error) { return 41, nil })
				return "", err
			case "kind":
				return "", txDo(c, db, "charge")
			}
			return "", nil
		}, durable.OnDrift(durable.DriftContinues))
		e := engineOn(t, s, durable.Config{ParkAfter: 50 * time.Millisecond}, older)
		stop := runEngine(t, e)
		for _, in := range []string{"type", "kind"} {
			start(t, e, older, in, durable.ID("run "+in))
		}
		for _, in := range []string{"type", "kind"} {
			await(t, "the park", func() bool { return info(t, e, "run "+in).Status == durable.StatusWaiting })
		}
		stop()
		wake(t, db)
		e = engineOn(t, s, durable.Config{}, newer)
		runEngine(t, e)
		_, err := result(t, e, newer, "run type")
		mustFail(t, err, durable.ErrDiverged, "run type", "charge", "evolving", "int")
		_, err2 := result(t, e, newer, "run kind")
		mustFail(t, err2, durable.ErrDiverged, "run kind", "charge", "step", "tx")
		t.Logf("diverged=2: %v; %v", err, err2)
	})
}

// shownAs is a name as History tells it, where a slash stands between scopes.
func shownAs(name string) string { return strings.NewReplacer("%", "%25", "/", "%2F").Replace(name) }
