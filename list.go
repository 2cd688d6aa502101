package durable

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// Page selects which page of a list a method returns.
type Page struct {
	Limit int // the largest number of entries of the page; zero means 100, the maximum is 1000
	// Cursor is where the page begins: the Next of the previous page, or the Cursor of the last event or fire that was
	// returned. With an empty Cursor, a method returns the first page. A cursor of List is a position in the order of all runs,
	// so that the cursor stays valid if you change the filter.
	Cursor string
	// MaxTime bounds how long [Engine.List] searches if no index finds just the runs that match the filter; see RunPage.SearchedTo.
	// With a MaxTime of zero, List searches until the page is full. Other methods ignore MaxTime.
	MaxTime time.Duration
}

// entryLimit returns the number of entries of the page.
func (p *Page) entryLimit() (int, error) {
	if p.Limit < 0 || p.Limit > maxPageLimit {
		return 0, fmt.Errorf("%w: a page of %d entries: use 1 to %d, or 0 for %d", ErrInvalidConfig, p.Limit, maxPageLimit, defaultPageLimit)
	}
	return firstNonZero(p.Limit, defaultPageLimit), nil
}

// RunPage is one page of a list.
type RunPage struct {
	Runs []RunInfo // without Input, Output, Tags, OpenCalls, Progress, LastFailure, LastLeaseLoss, Place, Unreceived, NoWorker, VersionWait and RetryWait
	Next string    // the cursor of the next page; empty on the last page
	// SearchedTo is not zero if List stopped its search because Page.MaxTime was over. A page with a SearchedTo has the
	// matching runs that were started after SearchedTo, and may be empty. To continue the search, call List with the cursor
	// Next.
	SearchedTo time.Time
}

const (
	defaultPageLimit = 100
	maxPageLimit     = 1000
)

// List returns a page of the runs that match the filter, the newest first. Runs that are started while you read the pages do not
// shift the later pages.
//
// Conditions on RunID, Parent, IDPrefix, Tag, GroupKey, Failure and Held, and on the statuses failed, expired and paused,
// use an index. With a condition on Owner, List reads the runs that are executed, that are due, and that wait for a time. If
// the filter has none of these conditions, List reads all runs, the newest first, until the page is full; Page.MaxTime
// bounds the time of this search. On PostgreSQL, if the index also contains runs that do not match, for example because many
// runs have the tag and few of them the version, or if the index has the runs in another order, List reads the index for at
// most Page.MaxTime. If the page is not complete then, List searches all runs, again for at most Page.MaxTime. Conditions on
// RunID, Parent, GroupKey and Held match few runs, so Page.MaxTime does not bound them. List returns [ErrInvalidConfig] for
// an invalid filter or page, and [ErrInvalidCursor] for a cursor that List did not return.
func (e *Engine) List(ctx context.Context, f Filter, p Page) (RunPage, error) {
	if err := e.checkUsable(ctx); err != nil {
		return RunPage{}, fmt.Errorf("list runs: %w", err)
	}
	filter, err := e.convertFilter(ctx, f)
	if err != nil {
		return RunPage{}, err
	}
	limit, err := p.entryLimit()
	if err != nil {
		return RunPage{}, err
	}
	var before uuid.UUID
	if p.Cursor != "" {
		if before, err = uuid.Parse(p.Cursor); err != nil || before.String() != p.Cursor {
			return RunPage{}, fmt.Errorf("%w: %.40q: give RunPage.Next of the page before", ErrInvalidCursor, p.Cursor)
		}
	}
	var page RunPage
	rows, reached, err := e.searchRuns(ctx, filter, before, limit+1, p.MaxTime)
	if err != nil {
		return RunPage{}, fmt.Errorf("list runs: %w", err)
	}
	if reached != (uuid.UUID{}) {
		page.Next, page.SearchedTo = reached.String(), store.TimeOfUUID(reached)
	}
	if len(rows) > limit {
		rows = rows[:limit]
		page.Next = rows[limit-1].UUID.String()
	}
	if page.Runs, err = e.newRunInfos(ctx, rows); err != nil {
		return RunPage{}, fmt.Errorf("list runs: %w", err)
	}
	return page, nil
}

// RunNode is a run in a tree of runs, with its children.
type RunNode struct {
	RunInfo  // without the fields that RunPage.Runs lacks
	Children []*RunNode
}

// Tree returns the run with the given ID, which is the caller's ID or the UUID, and all its descendants. The descendants
// include the children of all generations that are kept; see [RunInfo].ParentGeneration. Tree returns [ErrNotFound] if there is
// no such run.
func (e *Engine) Tree(ctx context.Context, id string) (*RunNode, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("read the tree of run %q: %w", id, err)
	}
	root, err := e.inner.GetWithoutPayloads(ctx, id)
	if err != nil {
		return nil, err
	}
	rows, err := e.inner.Store().RunTree(ctx, root.UUID, true)
	if err != nil {
		return nil, fmt.Errorf("read the tree of run %q: %w", id, err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: run %q was removed", ErrNotFound, id)
	}
	infos, err := e.newRunInfos(ctx, rows)
	if err != nil {
		return nil, fmt.Errorf("read the tree of run %q: %w", id, err)
	}
	nodes := make(map[string]*RunNode, len(rows))
	for i := range infos { // parents come first
		n := &RunNode{RunInfo: infos[i]}
		nodes[n.RunID] = n
		if parent := nodes[n.Parent]; parent != nil {
			parent.Children = append(parent.Children, n)
		}
	}
	return nodes[infos[0].RunID], nil
}

// TreeCounts holds the numbers of runs, and of their calls, in a tree of runs.
type TreeCounts struct {
	Statuses map[Status]int // the number of runs in each status; a status without runs has no entry
	// Delayed is the number of pending runs whose [Delay] is not over.
	Delayed int
	// OpenCalls has, for each kind of call, the number of calls of live runs without an outcome. Calls of branches that a
	// choice has ended are counted until their run ends; [RunInfo.OpenCalls] leaves these calls out.
	OpenCalls map[Kind]int
}

// TreeCounts counts the run with the given ID and all its descendants by their status, and their open calls by kind. The runs
// are those that [Engine.Tree] returns. TreeCounts returns [ErrNotFound] if there is no such run.
func (e *Engine) TreeCounts(ctx context.Context, id string) (TreeCounts, error) {
	if err := e.checkUsable(ctx); err != nil {
		return TreeCounts{}, fmt.Errorf("count the tree of run %q: %w", id, err)
	}
	root, err := e.inner.GetWithoutPayloads(ctx, id)
	if err != nil {
		return TreeCounts{}, err
	}
	now, err := e.inner.Now(ctx)
	if err != nil {
		return TreeCounts{}, err
	}
	rows, err := e.inner.Store().RunTreeCounts(ctx, root.UUID, now)
	if err != nil {
		return TreeCounts{}, fmt.Errorf("count the tree of run %q: %w", id, err)
	}
	counts := TreeCounts{Statuses: make(map[Status]int, len(rows.RunsByStatus)), Delayed: rows.DelayedCount, OpenCalls: make(map[Kind]int, len(rows.OpenCallsByKind))}
	for status, n := range rows.RunsByStatus {
		counts.Statuses[Status(status.String())] = n
	}
	for kind, n := range rows.OpenCallsByKind {
		counts.OpenCalls[Kind(kind.String())] = n
	}
	return counts, nil
}

// Tag sets a tag of the run when the run starts. The key of a tag has a namespace before a dot, such as team.owner; see
// [Engine.SetTags]. The key and the value of a tag are texts of 1 to 512 bytes without control characters.
func Tag(key, value string) StartOption {
	return func(o *startOptions) {
		for _, t := range o.tags {
			if t.Key == key {
				o.setFirstError(fmt.Errorf("%w: the option Tag is given twice for %q: leave one of them out", ErrInvalidConfig, key))
			}
		}
		o.tags = append(o.tags, store.Tag{Key: key, Value: value})
		o.setFirstError(naming.CheckTag(key, value))
	}
}

// SetTags sets tags of the run with the given ID, which is the caller's ID or the UUID, in any state of the run. An empty value
// removes a tag. The keys of tags have a namespace before a dot, such as team.owner. The keys and values of tags have at most
// 512 bytes and no control characters. With the options [Reason] or [Actor], an [Event] records the change of the tags, unless
// the run has the given tags already. SetTags returns [ErrNotFound] if there is no such run, and [ErrInvalidName] for an
// invalid tag.
func (e *Engine) SetTags(ctx context.Context, id string, tags map[string]string, opts ...ControlOption) error {
	if err := e.checkUsableOutsideWorkflow(ctx, "a change of tags", "Ctx.SetTags"); err != nil {
		return fmt.Errorf("tag run %q: %w", id, err)
	}
	list, err := sortedTags(tags)
	if err != nil {
		return err
	}
	o, err := applyActorReasonOptions("a change of tags", opts)
	if err != nil {
		return fmt.Errorf("tag run %q: %w", id, err)
	}
	if err := e.inner.CheckOutsideTx(ctx, "a change of tags"); err != nil {
		return err
	}
	act := o.actorAndReason()
	if act.HasActorOrReason() {
		if act.At, err = e.inner.NowBeforeWrite(ctx); err != nil {
			return fmt.Errorf("tag run %q: %w", id, err)
		}
	}
	row, err := e.inner.RunToChange(ctx, id)
	if err != nil {
		return err
	}
	there, err := e.inner.SetTags(ctx, row.UUID, list, act)
	switch {
	case err != nil:
		return fmt.Errorf("tag run %q: %w", id, err)
	case !there:
		return fmt.Errorf("%w: run %q was removed", ErrNotFound, id)
	}
	return nil
}

// sortedTags checks tags, and returns them in the order of their keys.
func sortedTags(tags map[string]string) ([]store.Tag, error) {
	list := make([]store.Tag, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if err := naming.CheckTag(key, firstNonZero(tags[key], "-")); err != nil {
			return nil, err
		}
		list = append(list, store.Tag{Key: key, Value: tags[key]})
	}
	return list, nil
}
