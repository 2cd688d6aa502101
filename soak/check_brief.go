package main

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/seed8ec063be/durable"
)

//go:embed leftovers_postgres.sql
var leftoversPostgres string

//go:embed leftovers_sqlite.sql
var leftoversSQLite string

// leftovers returns the rows that belong to no run.
func (p place) leftovers(ctx context.Context, s durable.Store) ([]string, error) {
	rows, err := p.queryTexts(ctx, s, leftoversSQLite, leftoversPostgres)
	if err != nil {
		return nil, fmt.Errorf("look for rows without a run: %w", err)
	}
	return rows, nil
}

// checkBrief checks that the runs of workflow brief are gone or complete: a run is gone only after its end, by a deletion that was called
// for its tree, or by the retention, which has archived it before. Nothing of a run that is gone is left.
func (e *evidence) checkBrief(f *findings) {
	for _, text := range e.leftovers {
		f.addViolation("deletion: no run has these rows: %s", text)
	}
	archived, root := make(map[string]bool), make(map[string]string)
	for _, run := range e.briefLoad.started {
		root[run] = run
	}
	for _, x := range e.entries {
		switch x.Kind {
		case kindArchived:
			if archived[x.Run] = true; x.Err != "" {
				f.addViolation("deletion: half of run %s was archived: %s", x.Run, x.Err)
			}
		case kindBriefBegun:
			if root[x.Run] = x.Run; x.Value != "" {
				root[x.Run] = x.Value
			}
		}
	}
	ends, deletions := make(map[string]string), make(map[string]int) // the latest end
	for _, x := range e.events {
		switch {
		case ended(durable.Status(x.Type)):
			ends[x.RunID] = string(x.Type)
		case x.Type == durable.EventDeleted:
			deletions[x.RunID]++
		}
	}
	for run, of := range root {
		f.report.brief++
		k := e.runs[run]
		acked, called := e.briefLoad.deleting[of]
		switch {
		case k == nil && ends[run] == "":
			f.addViolation("I1: run %s is lost: it is gone, and has never ended", run)
		case k == nil && !archived[run] && !called:
			f.addViolation("deletion: run %s is gone, which nobody has deleted", run)
		case k == nil && called:
			f.report.deleted++
		case k == nil:
			f.report.retired++
		case !ended(k.Status):
			f.addViolation("I7: run %s is %s", run, k.Status)
		case ends[run] != string(k.Status):
			f.addViolation("I5: run %s is %s, and its latest event is %q", run, k.Status, ends[run])
		case k.Status == durable.StatusCompleted && k.history[lastStep].Status != "completed":
			f.addViolation("deletion: run %s has completed, and half of it is left: %d steps", run, len(k.history))
		case run == of && acked:
			f.addViolation("deletion: run %s was deleted, and is there", run)
		case run != of && e.runs[of] == nil && k.Name != "detached":
			f.addViolation("deletion: run %s is left of a tree whose root is gone", run)
		}
		if n := deletions[run]; n > 1 {
			f.addViolation("deletion: run %s has %d events of its deletion", run, n)
		}
	}
}
