package durabletest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

const (
	stuckDelay   = 50 * time.Millisecond // at rest, with nothing due, before a wait is ended
	maxStuckRuns = 10                    // runs that are named
)

// A test that waits for a result which cannot come is told so at once. Nothing can come when all rests, no timer is left,
// and no goroutine of the test's own is there that could do something later: that is seen in the stacks.

// endStuckWaits ends the waits for results, now that nothing more will happen by itself.
func (p *clockDriver) endStuckWaits(nodes []*probe) {
	now := time.Now()
	if v := p.stateVersion(nodes); p.stuckSince.IsZero() || v != p.stuckVersion {
		p.stuckSince, p.stuckVersion = now, v
	}
	if now.Sub(p.stuckSince) < stuckDelay {
		return
	}
	p.stuckSince = now // it is looked at again later
	var waits []engine.Awaiting
	waiting := make(map[string]bool)
	for _, n := range nodes {
		if n.recorder.replay != nil {
			return
		}
		if e := n.engine.Load(); e != nil {
			for _, a := range e.Awaitings() {
				waiting[a.Goroutine] = true
				if a.Deadline.IsZero() || a.Deadline.Sub(now) > explainAfter { // others wait for that
					waits = append(waits, a)
				}
			}
		}
	}
	if len(waits) == 0 || hasActiveGoroutine(waiting) {
		return
	}
	for _, a := range waits {
		a.End(fmt.Errorf("durabletest: it is %s, and nothing more will happen by itself: %s", p.clock.Now().Format(time.RFC3339), p.describeWaits(nodes, a.Run)))
	}
}

// describeWaits says what a run, and those beneath it, wait for.
func (p *clockDriver) describeWaits(nodes []*probe, run store.ID) string {
	ctx, cancel := context.WithTimeout(context.Background(), barrierTimeout)
	defer cancel()
	s := nodes[0].Beneath()
	runs, err := s.Tree(ctx, run)
	if err != nil || len(runs) == 0 {
		return fmt.Sprintf("run %s waits (%v)", run, err)
	}
	var all []string
	for _, r := range runs {
		if r.Status.Terminal() {
			continue
		}
		text := fmt.Sprintf("run %q of workflow %q is %s", engine.ShownRun(r), r.Workflow, r.Status)
		executes := slices.ContainsFunc(nodes, func(n *probe) bool { e := n.engine.Load(); return e != nil && e.Executes(r.Workflow) })
		switch {
		case r.Status == store.Paused:
			text += ", and nobody resumes it"
		case !executes:
			text += ", and no engine of this test executes that workflow"
		default:
			text += p.describeOpenCalls(ctx, s, r)
		}
		if all = append(all, text); len(all) == maxStuckRuns {
			break
		}
	}
	return strings.Join(all, "; ")
}

// describeOpenCalls lists the calls of a run that have no outcome.
func (p *clockDriver) describeOpenCalls(ctx context.Context, s store.Store, r *store.Run) string {
	now := p.clock.Now()
	outline, err := s.Outline(ctx, r.ID, now)
	if err != nil || len(outline.Open) == 0 {
		return ""
	}
	var calls []string
	sight := engine.NewSight(r, outline.Choices, now)
	for i := range outline.Open {
		if step := &outline.Open[i]; sight.Waits(step) {
			calls = append(calls, fmt.Sprintf("%s %q", step.Kind, engine.Shown(step.Name)))
		}
	}
	return ", and waits for " + strings.Join(calls, ", ")
}

// passivePackages are those whose goroutines do nothing for a test of their own accord.
var passivePackages = []string{
	"github.com/seed8ec063be/durable.", "github.com/seed8ec063be/durable/internal/", "github.com/seed8ec063be/durable/durabletest.",
	"github.com/seed8ec063be/durable/sqlite.", "github.com/seed8ec063be/durable/postgres.",
	"database/sql.", "runtime.", "runtime/", "testing.", "os/signal.", "os/exec.", "context.", "modernc.org/", "github.com/jackc/",
}

// hasActiveGoroutine reports whether there is a goroutine, beside those that wait, that may do something for this test. Those of
// other tests that run at the same time do not.
func hasActiveGoroutine(waiting map[string]bool) bool {
	dump := make([]byte, 1<<20)
	for {
		n := runtime.Stack(dump, true)
		if n < len(dump) {
			dump = dump[:n]
			break
		}
		dump = make([]byte, 2*len(dump))
	}
	type routine struct{ stack, creator, parent string }
	all := make(map[string]routine)
	for stack := range strings.SplitSeq(string(dump), "\n\n") {
		head, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
		r := routine{stack: stack}
		if i := strings.LastIndex(stack, "\ncreated by "); i >= 0 {
			line, _, _ := strings.Cut(stack[i+len("\ncreated by "):], "\n")
			r.creator, r.parent, _ = strings.Cut(line, " in goroutine ")
		}
		all[head] = r
	}
	own := func(r routine) bool {
		return r.creator == "" || !strings.Contains(r.creator, "_test.") && slices.ContainsFunc(passivePackages, func(p string) bool { return strings.HasPrefix(r.creator, p) })
	}
	// root is the test, or the engine's goroutine, that the goroutine comes from; empty: it has ended.
	root := func(id string) string {
		for {
			r, there := all[id]
			switch {
			case !there:
				return ""
			case own(r):
				return id
			}
			id = r.parent
		}
	}
	tests := make(map[string]bool)
	for id := range waiting {
		tests[root(id)] = true
	}
	for id, r := range all {
		if own(r) || waiting[id] || strings.Contains(r.stack, "/durable/internal/engine.") {
			continue
		}
		from := root(id)
		if from == "" || tests[from] || !strings.HasPrefix(all[from].creator, "testing.") {
			return true
		}
	}
	// The tests that wait must themselves be waiting here: a goroutine of theirs may wait in their place.
	for id := range tests {
		if r, there := all[id]; !there || strings.HasPrefix(r.creator, "testing.") && !waiting[id] {
			return true
		}
	}
	return false
}
