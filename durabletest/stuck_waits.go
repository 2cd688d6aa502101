package durabletest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/history"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

const (
	stuckDelay   = 50 * time.Millisecond // how long nothing must be due before a wait ends
	maxStuckRuns = 10                    // the most runs that an error names
)

// endStuckWaits ends the waits for results with an error if nothing more can happen. This is the case when all engines wait, no
// timer is left or only held runs are due, and the stacks of the test's goroutines show that none of them could act later.
// endStuckWaits returns false if the test may still act.
func (p *clockDriver) endStuckWaits(nodes []*engineHooks) bool {
	now := time.Now()
	version := p.stateVersion(nodes)
	if p.stuckTimer.duration(version, now) < stuckDelay {
		return true
	}
	p.stuckTimer.restart(version, now) // checked again after stuckDelay
	var waits, nearDeadline []engine.AwaitCaller
	waiting := make(map[string]bool)
	for _, n := range nodes {
		if e := n.engine.Load(); e != nil {
			for _, a := range e.ListAwaitCallers() {
				waiting[a.Goroutine] = true
				if a.Deadline.IsZero() || a.Deadline.Sub(now) > explainStallAfter {
					waits = append(waits, a)
				} else { // the wait ends at its deadline
					nearDeadline = append(nearDeadline, a)
				}
			}
		}
	}
	if len(waiting) == 0 || hasActiveGoroutine(waiting) {
		p.stuckFinding.isConfirmable = false
		return false
	}
	if !p.stuckFinding.isConfirmed(version) {
		return true
	}
	if len(nearDeadline) > 0 && !p.stall.isLogged {
		p.stall.isLogged = true
		p.logStuckWait(p.clock.Now(), p.describeWaits(nodes, nearDeadline[0].Run))
	}
	for _, a := range waits {
		a.CancelAwait(fmt.Errorf("durabletest: the clock shows %s, and nothing more will happen by itself: %s", p.clock.Now().Format(time.RFC3339), p.describeWaits(nodes, a.Run)))
	}
	return true
}

// stuckFinding holds the result of the latest check. One check is not enough: a goroutine of the test may have been in a call of the
// engine that writes, whose stack looks like that of a call that waits. Or the goroutine may have ended after the search for due runs
// and before the check of the stacks. If the goroutine has written anything, the state changes before the next check.
type stuckFinding struct {
	isConfirmable bool
	version       uint64
}

// isConfirmed reports whether the previous check had the same result, and nothing was written since.
func (f *stuckFinding) isConfirmed(version uint64) bool {
	confirmed := f.isConfirmable && f.version == version
	f.isConfirmable, f.version = true, version
	return confirmed
}

// logStuckWait logs what the test waits for. waits is a result of describeWaits.
func (p *clockDriver) logStuckWait(now time.Time, waits string) {
	p.t.Logf("durabletest: the test waits for a result, the clock shows %s, and nothing more will happen by itself: %s", now.Format(time.RFC3339), waits)
}

// describeWaits describes what a run and its descendants wait for.
func (p *clockDriver) describeWaits(nodes []*engineHooks, run store.UUID) string {
	ctx, cancel := context.WithTimeout(context.Background(), requestClaimsTimeout)
	defer cancel()
	var s store.Store = nodes[0].WrappedStore()
	if e := nodes[0].engine.Load(); e != nil {
		s = e.Store() // decodes the reasons
	}
	runs, err := s.RunTree(ctx, run, false)
	if err != nil || len(runs) == 0 {
		return fmt.Sprintf("run %s waits (%v)", run, err)
	}
	var all []string
	for _, r := range runs {
		if r.Status.IsTerminal() {
			continue
		}
		text := fmt.Sprintf("run %q of workflow %q is %s", naming.DisplayRun(r), r.Workflow, engine.DescribeStatus(r))
		executes := slices.ContainsFunc(nodes, func(n *engineHooks) bool { e := n.engine.Load(); return e != nil && e.HasWorkflow(r.Workflow) })
		switch {
		case engine.IsHeldForDrift(r):
			text += ", and no engine of this test has code that fits its history"
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
	outline, err := s.RunProgress(ctx, r.UUID, now)
	if err != nil || len(outline.OpenCalls) == 0 {
		return ""
	}
	var calls []string
	sight := history.NewView(r, outline.Choices, now)
	for i := range outline.OpenCalls {
		if step := &outline.OpenCalls[i]; sight.MayWait(step) {
			calls = append(calls, fmt.Sprintf("%s %q", step.Kind, naming.Display(step.Name)))
		}
	}
	return ", and waits for " + strings.Join(calls, ", ")
}

// passivePackages are the packages whose goroutines never act for a test by themselves.
var passivePackages = []string{
	"github.com/seed8ec063be/durable.", "github.com/seed8ec063be/durable/internal/", "github.com/seed8ec063be/durable/durabletest.",
	"github.com/seed8ec063be/durable/sqlite.", "github.com/seed8ec063be/durable/postgres.",
	"database/sql.", "runtime.", "runtime/", "testing.", "os/signal.", "os/exec.", "context.", "modernc.org/", "github.com/jackc/", "github.com/fsnotify/",
}

// hasActiveGoroutine reports whether there is a goroutine, besides the waiting ones, that could act for this test.
// Goroutines of other tests that run at the same time do not count.
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
	// root returns the test's or the engine's goroutine that started the goroutine, directly or not; empty if that has ended.
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
	// A test whose own goroutine does not wait may still act, although another goroutine of it waits.
	for id := range tests {
		if r, there := all[id]; !there || strings.HasPrefix(r.creator, "testing.") && !waiting[id] {
			return true
		}
	}
	return false
}
