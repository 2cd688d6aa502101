package durable

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// Filter matches runs that meet all its conditions. A field of a Filter that has its zero value is no condition. A Filter
// matches root runs and children.
type Filter struct {
	Workflow      string
	Queue         string
	Priority      []int         // the run has one of these priorities
	GroupKey      string        // the run has this group key in the queue that Filter.Queue names, and has not ended; Queue must be set too
	Status        []Status      // the run has one of these statuses
	Tag           string        // the run has a tag with this key
	TagValue      string        // the tag has this value; empty matches any value
	IDPrefix      string        // the ID that the caller gave the run begins with this text; no child matches, because a child has no such ID
	OlderThan     time.Duration // the run was started longer ago than this, by the database's clock
	CreatedAfter  time.Time     // the run was started after this time
	CreatedBefore time.Time     // the run was started before this time
	Roots         bool          // the run is a root run: RunInfo.Parent is empty
	Failure       FailureKey    // the run failed or expired with this failure key, which must name a workflow; see Engine.Failures
	RunID         []string      // the run has one of these UUIDs, at most 1000; Engine.Failures refuses this condition
	Version       string        // the program that started the run, or that executed it last, has this version
	Owner         string        // the worker with this ID executes the run now; see WorkerInfo.ID
	EndedAfter    time.Time     // the run ended after this time
	EndedBefore   time.Time     // the run ended before this time
	Parent        []string      // the run is a child of any generation of one of these runs, given by their UUIDs, at most 1000; Engine.Failures refuses this condition
	// Held matches runs whose history the code does not fit (RunInfo.Diverged). Held also matches runs that have a
	// RunInfo.Reason and whose RunInfo.Crashes is greater than zero: the database rejected the run's writes, or the run lost
	// its process. Held does not match runs that wait for a worker that can decode their payloads. Held cannot be combined with
	// RunID, Parent, GroupKey and Failure.
	Held bool
}

// convertFilter checks a filter, and converts it for the store.
func (e *Engine) convertFilter(ctx context.Context, f Filter) (store.Filter, error) {
	g := store.Filter{
		Workflow: f.Workflow, Queue: f.Queue, GroupKey: f.GroupKey, NamePrefix: f.IDPrefix, OnlyRoots: f.Roots || f.IDPrefix != "",
		Tag: store.Tag{Key: f.Tag, Value: f.TagValue}, CreatedAfter: f.CreatedAfter, CreatedBefore: f.CreatedBefore,
		Failure: store.FailureKey(f.Failure), OnlyHeld: f.Held, Version: f.Version, EndedAfter: f.EndedAfter, EndedBefore: f.EndedBefore,
	}
	for _, p := range f.Priority {
		if p < LowestPriority || p > HighestPriority {
			return g, fmt.Errorf("%w: the filter names the priority %d: use %d to %d", ErrInvalidConfig, p, LowestPriority, HighestPriority)
		}
		g.Priorities = append(g.Priorities, int16(p))
	}
	for _, s := range f.Status {
		known, ok := store.ParseStatus(string(s))
		if !ok {
			return g, fmt.Errorf("%w: the filter names the status %q: use %s", ErrInvalidConfig, s, strings.Join([]string{
				string(StatusPending), string(StatusRunning), string(StatusWaiting), string(StatusPaused),
				string(StatusCompleted), string(StatusFailed), string(StatusCancelled), string(StatusExpired),
			}, ", "))
		}
		g.Statuses = append(g.Statuses, known)
	}
	var err error
	if f.Owner != "" {
		if g.Owner, err = uuid.Parse(f.Owner); err != nil || g.Owner == (uuid.UUID{}) {
			return g, fmt.Errorf("%w: the filter's Owner is %.40q, which is no UUID: give the ID of a worker, as Workers lists them", ErrInvalidConfig, f.Owner)
		}
	}
	if g.UUIDs, err = parseUUIDs("RunID", f.RunID); err != nil {
		return g, err
	}
	if g.Parents, err = parseUUIDs("Parent", f.Parent); err != nil {
		return g, err
	}
	switch {
	case f.OlderThan < 0:
		return g, fmt.Errorf("%w: the filter's OlderThan is %v: it must be positive", ErrInvalidConfig, f.OlderThan)
	case f.GroupKey != "" && f.Queue == "":
		return g, fmt.Errorf("%w: the filter has a GroupKey and no Queue: keys belong to queues, name one", ErrInvalidConfig)
	case f.TagValue != "" && f.Tag == "":
		return g, fmt.Errorf("%w: the filter has a TagValue and no Tag", ErrInvalidConfig)
	case f.Failure.Workflow == "" && (f.Failure.Step != "" || f.Failure.Type != ""):
		return g, fmt.Errorf("%w: the filter's Failure names no Workflow: give the FailureKey of a group that Failures returned", ErrInvalidConfig)
	case f.Failure.Workflow != "" && f.GroupKey != "":
		return g, fmt.Errorf("%w: the filter has a GroupKey and a Failure: runs that have failed have no place in a queue, leave one of them out", ErrInvalidConfig)
	case f.Held && (len(f.RunID)+len(f.Parent) > 0 || f.GroupKey != "" || f.Failure.Workflow != ""):
		return g, fmt.Errorf("%w: the filter has Held and one of RunID, Parent, GroupKey and Failure: leave one of them out, and look at the runs that List returns", ErrInvalidConfig)
	case f.OlderThan > 0:
		now, err := e.inner.Now(ctx)
		if err != nil {
			return g, err
		}
		if limit := now.Add(-f.OlderThan); g.CreatedBefore.IsZero() || limit.Before(g.CreatedBefore) {
			g.CreatedBefore = limit
		}
	}
	for _, text := range []string{f.Workflow, f.Queue, f.IDPrefix, f.Tag, f.GroupKey, f.TagValue, f.Failure.Workflow, f.Failure.Step, f.Failure.Type, f.Version} {
		if err := naming.CheckText("filter's text", text); err != nil {
			return g, err
		}
	}
	return g, nil
}

// maxFilterRuns bounds the runs that a filter names.
const maxFilterRuns = 1000

// parseUUIDs returns the UUIDs that a field of a filter names, without repetitions.
func parseUUIDs(field string, texts []string) (ids []uuid.UUID, err error) {
	if len(texts) > maxFilterRuns {
		return nil, fmt.Errorf("%w: the filter's %s names %d runs: use at most %d", ErrInvalidConfig, field, len(texts), maxFilterRuns)
	}
	for _, text := range texts {
		id, ok := store.ParseCanonicalUUID(text)
		if !ok {
			return nil, fmt.Errorf("%w: the filter's %s names %.40q, which is no UUID: give RunInfo.RunID", ErrInvalidConfig, field, text)
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
