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
	stuckFor  = 50 * time.Millisecond // at rest, with nothing due, before a wait is ended
	mostStuck = 10                    // runs that are named
)

// A test that waits for a result which cannot come is told so at once. Nothing can come when all rests, no timer is left,
// and no goroutine of the test's own is there that could do something later: that is seen in the stacks.

// stuck ends the waits for results, now that nothing more will happen by itself.
func (p *pace) stuck(nodes []*node) {
	now := time.Now()
	if v := p.version(nodes); p.stuckSince.IsZero() || v != p.stuckAt {
		p.stuckSince, p.stuckAt = now, v
	}
	if now.Sub(p.stuckSince) < stuckFor {
		return
	}
	p.stuckSince = now // it is looked at again later
	var waits []engine.Awaiting
	waiting := make(map[string]bool)
	for _, n := range nodes {
		if n.log.replay != nil {
			return
		}
		if e := n.inner.Load(); e != nil {
			for _, a := range e.Awaitings() {
				waiting[a.Goroutine] = true
				if a.Deadline.IsZero() || a.Deadline.Sub(now) > silence { // others wait for that
					waits = append(waits, a)
				}
			}
		}
	}
	if len(waits) == 0 || helpers(waiting) {
		return
	}
	for _, a := range waits {
		a.End(fmt.Errorf("durabletest: it is %s, and nothing more will happen by itself: %s", p.clock.Now().Format(time.RFC3339), p.awaited(nodes, a.Run)))
	}
}

// awaited says what a run, and those beneath it, wait for.
func (p *pace) awaited(nodes []*node, run store.ID) string {
	ctx, cancel := context.WithTimeout(context.Background(), barrier)
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
		executes := slices.ContainsFunc(nodes, func(n *node) bool { e := n.inner.Load(); return e != nil && e.Executes(r.Workflow) })
		switch {
		case r.Status == store.Paused:
			text += ", and nobody resumes it"
		case !executes:
			text += ", and no engine of this test executes that workflow"
		default:
			text += p.open(ctx, s, r)
		}
		if all = append(all, text); len(all) == mostStuck {
			break
		}
	}
	return strings.Join(all, "; ")
}

// open lists the calls of a run that have no outcome.
func (p *pace) open(ctx context.Context, s store.Store, r *store.Run) string {
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

// ownPackages are those whose goroutines do nothing for a test of their own accord.
var ownPackages = []string{
	"github.com/seed8ec063be/durable.", "github.com/seed8ec063be/durable/internal/", "github.com/seed8ec063be/durable/durabletest.",
	"github.com/seed8ec063be/durable/sqlite.", "github.com/seed8ec063be/durable/postgres.",
	"database/sql.", "runtime.", "runtime/", "testing.", "os/signal.", "os/exec.", "context.", "modernc.org/", "github.com/jackc/",
}

// helpers reports whether there is a goroutine, beside those that wait, that may do something for this test. Those of
// other tests that run at the same time do not.
func helpers(waiting map[string]bool) bool {
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
		return r.creator == "" || !strings.Contains(r.creator, "_test.") && slices.ContainsFunc(ownPackages, func(p string) bool { return strings.HasPrefix(r.creator, p) })
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
