package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	_ "embed"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
)

//go:embed connections.sql
var connectionsQuery string

// findings holds the violations that the checker found, and its counts.
type findings struct {
	violations []string
	report     report
}

// addViolation adds a violation.
func (f *findings) addViolation(format string, args ...any) {
	f.violations = append(f.violations, fmt.Sprintf(format, args...))
}

// evidence holds everything that is known of a soak after its end.
type evidence struct {
	controller    *controller
	load          *load
	clients       *clients
	queueLoad     *queueLoad
	repairLoad    *repairLoad
	scheduleLoad  *scheduleLoad
	briefLoad     *briefLoad
	revisedLoad   *revisedLoad
	leftovers     []string                          // rows that belong to no run
	scheduleFires map[string][]durable.ScheduleFire // of the schedules with overlap policies, the newest first
	entries       []entry
	runs          map[string]*knownRun // by UUID
	order         []*knownRun          // newest first, as List returns them
	effects       []effect
	events        []durable.Event
}

// knownRun is a run as the database holds it.
type knownRun struct {
	*durable.RunInfo
	history     map[string]durable.Checkpoint
	parent      *knownRun
	plan        *plan  // of an order, or of a descendant of one
	root        *order // nil unless the run is an order, or a descendant of one
	losersChild bool   // the run is the child of a branch that a choice ended
}

// check compares the plans, the ledger and the database. The error broken is a violation too.
func check(ctx context.Context, c *controller, l *load, t *clients, q *queueLoad, repairs *repairLoad, schedules *scheduleLoad, b *briefLoad, revised *revisedLoad, s *faults, broken error) (*report, error) {
	c.stopSending()
	f := &findings{}
	e := &evidence{controller: c, load: l, clients: t, queueLoad: q, repairLoad: repairs, scheduleLoad: schedules, briefLoad: b, revisedLoad: revised}
	if err := e.gather(ctx, s.place); err != nil {
		return nil, fmt.Errorf("gather what to check: %w", err)
	}
	for _, err := range append(c.violations, broken) {
		if err != nil {
			f.addViolation("%v", err)
		}
	}
	for _, o := range l.orders {
		if o.err != nil {
			f.addViolation("%v", o.err)
		}
	}
	e.checkLedger(f)
	e.checkEnds(f)
	e.checkPlans(f)
	e.checkTransactions(f)
	e.checkDeadlines(f)
	e.checkAttemptBounds(f)
	e.checkFlow(f)
	e.checkQueues(f)
	e.checkFolds(f)
	e.checkRepairs(f)
	e.checkSchedules(f)
	e.checkBrief(f)
	e.checkRevised(f)
	f.checkLeaks(ctx, s.place, e)

	r := &f.report
	r.kill9, r.sigstop, r.killer, r.open, r.counted = s.kill9, s.sigstop, s.killer.kills, t.open+q.open, q.countComparisons
	if v := s.place.servers; v != nil {
		r.immediate, r.terminated, r.away, r.blocked, r.failovers = v.immediate, v.terminated, v.away, v.blocked, v.failovers
	}
	var violations []string
	r.linear, r.operations, violations = t.checkLinearizable(30 * time.Second)
	r.violations = append(f.violations, violations...)
	r.traces = e.traces(r.violations)
	return r, nil
}

// gather reads the ledger and the database.
func (e *evidence) gather(ctx context.Context, p place) (err error) {
	if e.entries, err = e.controller.ledger.read(); err != nil {
		return err
	}
	if e.effects, err = p.effects(ctx, e.controller.store); err != nil {
		return err
	}
	if e.leftovers, err = p.leftovers(ctx, e.controller.store); err != nil {
		return err
	}
	if err := e.gatherRuns(ctx); err != nil {
		return err
	}
	if e.scheduleFires, err = e.scheduleLoad.fires(ctx); err != nil {
		return err
	}
	for cursor := ""; ; {
		page, err := e.controller.Events(ctx, durable.Page{Cursor: cursor, Limit: 1000})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		e.events, cursor = append(e.events, page...), page[len(page)-1].Cursor
	}
}

func (e *evidence) gatherRuns(ctx context.Context) error {
	e.runs = make(map[string]*knownRun)
	for page := (durable.Page{Limit: 1000}); ; {
		list, err := e.controller.List(ctx, durable.Filter{}, page)
		if err != nil {
			return err
		}
		for i := range list.Runs {
			k := &knownRun{history: make(map[string]durable.Checkpoint)}
			if k.RunInfo, err = e.controller.Get(ctx, list.Runs[i].RunID); err != nil {
				return err
			}
			steps, err := e.controller.History(ctx, k.RunID)
			if err != nil {
				return err
			}
			for _, c := range steps {
				k.history[c.Name] = c
			}
			e.runs[k.RunID] = k
			e.order = append(e.order, k)
		}
		if page.Cursor = list.Next; page.Cursor == "" {
			break
		}
	}
	orders := make(map[string]*order)
	for _, o := range e.load.orders {
		orders[o.id] = o
	}
	for i := len(e.order) - 1; i >= 0; i-- { // from the oldest, so that parents come first
		k := e.order[i]
		if o := orders[k.ID]; o != nil {
			k.root, k.plan = o, o.plan
		}
		if k.ParentGeneration > 0 { // its call is not in the history that is checked
			continue
		}
		if k.parent = e.runs[k.Parent]; k.parent == nil || k.Workflow != e.controller.plans.order.Name() && k.Workflow != e.controller.plans.changing.Name() {
			continue
		}
		k.root = k.parent.root
		name := k.Name
		k.parent.plan.eachAct(func(a act) {
			switch {
			case a.Name == name:
				k.plan = a.Plan
			case a.Do == doRace && strings.HasPrefix(name, a.Name+"-loser-"):
				k.plan, k.losersChild = a.Plan, true
			}
		})
		if k.plan == nil {
			return errors.New("run " + k.RunID + " is the child of an act that its parent does not have")
		}
	}
	return nil
}

// checkLeaks checks I12: no goroutine was left in a worker, and no connection is left at the server.
func (f *findings) checkLeaks(ctx context.Context, p place, e *evidence) {
	for _, x := range e.entries {
		if x.Kind == kindLeaked {
			f.addViolation("I12: worker %d has leaked goroutines: %s", x.Pid, x.Err)
		}
	}
	if p.servers == nil {
		return
	}
	_ = e.controller.store.Close() // its connections and those of the pool are the last of this process
	p.pool.Close()
	left := 0
	for _, server := range []*pgtest.Server{p.servers.primary, p.servers.standby} {
		n, err := connections(ctx, server.URL())
		if err != nil {
			f.addViolation("I12: count the connections: %v", err)
		}
		left += n
	}
	if left != 0 {
		f.addViolation("I12: %d connections are left", left)
	}
}

// connections counts the connections of others at a server, when they had two seconds to end.
func connections(ctx context.Context, url string) (left int, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	for range 100 { // a backend notices a moment later that its client has disconnected
		if err := conn.QueryRow(ctx, connectionsQuery).Scan(&left); err != nil || left == 0 {
			return left, err
		}
		_ = sleepCtx(ctx, 20*time.Millisecond)
	}
	return left, nil
}
