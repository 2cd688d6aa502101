package durable

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// Filter chooses runs, also children unless Roots is set. Its zero fields choose all.
type Filter struct {
	Workflow      string
	Queue         string
	Status        []Status
	Tag           string        // a tag's key
	TagValue      string        // with Tag: its value; empty: any
	IDPrefix      string        // of the caller's ID, which only roots have: it chooses no children
	OlderThan     time.Duration // since it was started, by the database's clock
	CreatedAfter  time.Time
	CreatedBefore time.Time
	Roots         bool
}

// filter checks a filter.
func (e *Engine) filter(ctx context.Context, f Filter) (store.Filter, error) {
	g := store.Filter{
		Workflow: f.Workflow, Queue: f.Queue, NamePrefix: f.IDPrefix, Roots: f.Roots || f.IDPrefix != "",
		Tag: store.Tag{Key: f.Tag, Value: f.TagValue}, CreatedAfter: f.CreatedAfter, CreatedBefore: f.CreatedBefore,
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
	switch {
	case f.OlderThan < 0:
		return g, fmt.Errorf("%w: the filter's OlderThan is %v: it must be positive", ErrInvalidConfig, f.OlderThan)
	case f.TagValue != "" && f.Tag == "":
		return g, fmt.Errorf("%w: the filter has a TagValue and no Tag", ErrInvalidConfig)
	case f.OlderThan > 0:
		now, err := e.inner.Now(ctx)
		if err != nil {
			return g, err
		}
		if limit := now.Add(-f.OlderThan); g.CreatedBefore.IsZero() || limit.Before(g.CreatedBefore) {
			g.CreatedBefore = limit
		}
	}
	for _, text := range []string{f.Workflow, f.Queue, f.IDPrefix, f.Tag, f.TagValue} {
		if err := engine.CheckText("filter's text", text); err != nil {
			return g, err
		}
	}
	return g, nil
}
