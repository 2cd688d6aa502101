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
)

//go:embed connections.sql
var connectionsQuery string

// findings are what a check found to be wrong, and what it counted.
type findings struct {
	violations []string
	report     report
}

// wrong notes a violation.
func (f *findings) wrong(format string, args ...any) {
	f.violations = append(f.violations, fmt.Sprintf(format, args...))
}

// evidence is all that is known of a soak when it is over.
type evidence struct {
	boss    *boss
	load    *load
	talks   *talks
	entries []entry
	runs    map[string]*known // by UUID
	order   []*known          // as they were started
	effects []effect
	events  []durable.Event
}

// known is what the database knows of a run.
type known struct {
	*durable.RunInfo
	history map[string]durable.Checkpoint
	parent  *known
	plan    *plan  // of an order, or of a child of one
	root    *order // nil unless the run is an order's, or beneath one
	lost    bool   // it is the child of a branch that a choice has ended
}

// check compares what was planned, what was seen and what the database says.
func check(ctx context.Context, b *boss, l *load, t *talks, s *strikes, broken error) (*report, error) {
	b.hangUp()
	f := &findings{}
	e := &evidence{boss: b, load: l, talks: t}
	if err := e.gather(ctx, s.place); err != nil {
		return nil, fmt.Errorf("gather what to check: %w", err)
	}
	for _, err := range append(b.wrong, broken) {
		if err != nil {
			f.wrong("%v", err)
		}
	}
	for _, o := range l.orders {
		if o.err != nil {
			f.wrong("%v", o.err)
		}
	}
	e.ledger(f)
	e.ends(f)
	e.plans(f)
	e.transactions(f)
	e.deadlines(f)
	e.bounds(f)
	f.left(ctx, s.place, e)

	r := &f.report
	r.kill9, r.sigstop, r.immediate, r.terminated, r.killer = s.kill9, s.sigstop, s.immediate, s.terminated, s.killer.kills
	var violations []string
	r.linear, r.operations, violations = t.linearizable(30 * time.Second)
	r.violations = append(f.violations, violations...)
	r.stories = e.stories(r.violations)
	return r, nil
}

// gather reads the ledger and the database.
func (e *evidence) gather(ctx context.Context, p place) (err error) {
	if e.entries, err = e.boss.book.read(); err != nil {
		return err
	}
	if e.effects, err = p.effects(ctx, e.boss.store); err != nil {
		return err
	}
	if err := e.gatherRuns(ctx); err != nil {
		return err
	}
	for cursor := ""; ; {
		page, err := e.boss.Events(ctx, durable.Page{Cursor: cursor, Limit: 1000})
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
	e.runs = make(map[string]*known)
	for page := (durable.Page{Limit: 1000}); ; {
		list, err := e.boss.List(ctx, durable.Filter{}, page)
		if err != nil {
			return err
		}
		for i := range list.Runs {
			k := &known{history: make(map[string]durable.Checkpoint)}
			if k.RunInfo, err = e.boss.Get(ctx, list.Runs[i].RunID); err != nil {
				return err
			}
			steps, err := e.boss.History(ctx, k.RunID)
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
		if k.parent = e.runs[k.Parent]; k.parent == nil {
			continue
		}
		k.root = k.parent.root
		name := k.Name
		k.parent.plan.walk(func(a act) {
			switch {
			case a.Name == name:
				k.plan = a.Plan
			case a.Do == doRace && strings.HasPrefix(name, a.Name+"-loser-"):
				k.plan, k.lost = a.Plan, true
			}
		})
		if k.plan == nil {
			return errors.New("run " + k.RunID + " is the child of no act of its parent")
		}
	}
	return nil
}

// left checks I12: no goroutine and no connection of a worker is left.
func (f *findings) left(ctx context.Context, p place, e *evidence) {
	for _, x := range e.entries {
		if x.Kind == kLeak {
			f.wrong("I12: worker %d has leaked goroutines: %s", x.Pid, x.Err)
		}
	}
	if p.server == nil {
		return
	}
	_ = e.boss.store.Close() // the last of this process
	conn, err := pgx.Connect(ctx, p.Address)
	if err != nil {
		f.wrong("I12: count the connections: %v", err)
		return
	}
	defer conn.Close(ctx)
	left := -1
	for range 100 { // a backend takes a moment to notice that its client has gone
		if err := conn.QueryRow(ctx, connectionsQuery).Scan(&left); err != nil || left == 0 {
			break
		}
		_ = wait(ctx, 20*time.Millisecond)
	}
	if left != 0 {
		f.wrong("I12: %d connections are left", left)
	}
}
