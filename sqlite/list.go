package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"slices"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// maxSortedRuns is the number of runs with a name prefix or a tag up to which ListRuns sorts them. If there are more, ListRuns
// scans all runs, newest first, and filters. At the threshold both take about as long.
const maxSortedRuns = 10_000

// ListRuns implements store.Store. It uses the index that fits the filter best.
func (s *database) ListRuns(ctx context.Context, f store.Filter, before uuid.UUID, limit int) (runs []*store.Run, err error) {
	if limit <= 0 {
		return nil, nil
	}
	_, before = f.UUIDRange(before)
	err = s.withReadConn(ctx, "list", func(x executor) error {
		if len(f.UUIDs)+len(f.Parents) > 0 {
			runs, err = listRunsByIDOrParent(ctx, x, &f, before, limit)
			return err
		}
		q, parts, err := chooseListQuery(x, &f)
		if err != nil {
			return err
		}
		runs, err = mergeListParts(ctx, x, q, filterArgs(&f), parts, before, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return runs, nil
}

// wholeList is the only part of a list whose statement returns all runs in order.
var wholeList = []int64{0}

// chooseListQuery returns the statement for a filter, and the parts of the list. The statement returns the runs of one part in order. Its first
// parameter is the part, which is a status, or nothing if there is only one part.
func chooseListQuery(x executor, f *store.Filter) (q queryID, parts []int64, err error) {
	n := 0
	switch {
	case f.OnlyHeld:
		return qRunsListHeld, wholeList, nil
	case f.Failure.Workflow != "":
		return qRunsListByFailure, wholeList, nil
	case f.GroupKey != "":
		return qRunsListByGroupKey, wholeList, nil
	case f.Tag.Key != "" && f.Tag.Value != "":
		return qRunsListByTag, wholeList, nil
	case f.Tag.Key != "":
		n, err = queryInt(x, qRunsCountByTagKey, f.Tag.Key, int64(maxSortedRuns+1))
		q = qRunsListByTagKey
	case f.NamePrefix != "":
		n, err = queryInt(x, qRunsCountByRunNamePrefix, f.NamePrefix, prefixUpperBound(f.NamePrefix), int64(maxSortedRuns+1))
		q = qRunsListByRunNamePrefix
	case f.Owner != (uuid.UUID{}):
		return qRunsListByOwner, wholeList, nil
	case f.SelectsOnlyStatuses(store.Paused, store.Failed, store.Expired):
		for _, status := range f.Statuses {
			if !slices.Contains(parts, int64(status)) {
				parts = append(parts, int64(status))
			}
		}
		return qRunsListByStatus, parts, nil
	default:
		return qRunsList, wholeList, nil
	}
	if n > maxSortedRuns {
		q = qRunsList
	}
	return q, wholeList, err
}

// filterArgs returns the parameters of all list statements. listPage sets the first three: the part of the list, the ID
// that the results stay below, and the limit.
func filterArgs(f *store.Filter) []driver.Value {
	statuses := int64(0)
	for _, s := range f.Statuses {
		statuses |= 1 << 62 // so that statuses is not zero, whatever s is
		if s > 0 && s < 62 {
			statuses |= 1 << s
		}
	}
	priorities := int64(0)
	for _, p := range f.Priorities {
		priorities |= 1 << 62
		if p > -31 && p < 31 {
			priorities |= 1 << (p + 31)
		}
	}
	var owner driver.Value
	if f.Owner != (uuid.UUID{}) {
		owner = bindUUID(f.Owner)
	}
	from, _ := f.UUIDRange(uuid.UUID{})
	return []driver.Value{
		nil, nil, nil, f.Workflow, f.Queue, statuses, bindTime(f.CreatedAfter), bindTime(f.CreatedBefore), bindBool(f.OnlyRoots),
		f.NamePrefix, prefixUpperBound(f.NamePrefix), f.Tag.Key, f.Tag.Value, priorities, f.GroupKey,
		f.Failure.Workflow, f.Failure.Step, f.Failure.Type, f.Version, owner, bindTime(f.EndedAfter), bindTime(f.EndedBefore), bindUUID(from),
	}
}

// prefixUpperBound returns the least text that is greater than all texts with the prefix, or NULL if there is none.
func prefixUpperBound(prefix string) driver.Value {
	b := []byte(prefix)
	for len(b) > 0 && b[len(b)-1] == 0xff {
		b = b[:len(b)-1]
	}
	if len(b) == 0 {
		return nil
	}
	b[len(b)-1]++
	return string(b)
}

func listPage(x executor, q queryID, args []driver.Value, part int64, before uuid.UUID, limit int) (runs []*store.Run, err error) {
	args[0], args[1], args[2] = part, bindUUID(before), int64(limit)
	err = x.query(q, func(v []driver.Value) error {
		row, err := scanRun(v)
		runs = append(runs, &row.Run)
		return err
	}, args...)
	return runs, err
}

// listRunsByIDOrParent returns the newest of the runs with the UUIDs of the filter, or of the children of its parents. A child of a
// superseded generation has the archive ID of the generation as its parent.
func listRunsByIDOrParent(ctx context.Context, x executor, f *store.Filter, before uuid.UUID, limit int) (runs []*store.Run, err error) {
	parents := slices.Clone(f.Parents)
	for _, id := range f.Parents {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := x.query(qGenerationArchiveIDs, func(v []driver.Value) error {
			c := columnReader{values: v}
			parents = append(parents, c.uuid())
			return c.err
		}, bindUUID(id))
		if err != nil {
			return nil, err
		}
	}
	q, ids := qRunsListByID, f.UUIDs
	if len(ids) == 0 {
		q, ids = qRunsListByParent, parents
	}
	args := append(filterArgs(f), nil)
	for _, id := range store.SortedUniqueUUIDs(ids) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		args[len(args)-1] = bindUUID(id)
		found, err := listPage(x, q, args, int64(store.ShardOf(id)), before, limit)
		if err != nil {
			return nil, err
		}
		runs = append(runs, found...)
	}
	if len(f.UUIDs) > 0 && len(parents) > 0 {
		parents = store.SortedUniqueUUIDs(parents)
		runs = slices.DeleteFunc(runs, func(r *store.Run) bool {
			_, found := slices.BinarySearchFunc(parents, r.Parent.UUID, store.CompareUUIDsByShard)
			return !r.Parent.Valid || !found
		})
	}
	slices.SortFunc(runs, func(l, r *store.Run) int { return bytes.Compare(r.UUID[:], l.UUID[:]) })
	return runs[:min(limit, len(runs))], nil
}

// listPart is what mergeListParts has read of one part of a list and not yet returned.
type listPart struct {
	runs      []*store.Run
	beforeID  uuid.UUID
	exhausted bool
}

// mergeListParts returns the newest runs of all parts. The runs of one part are read in order, page by page, as needed.
func mergeListParts(ctx context.Context, x executor, q queryID, args []driver.Value, parts []int64, before uuid.UUID, limit int) ([]*store.Run, error) {
	ahead := min(limit, 4+2*(limit/len(parts)))
	lanes := make([]listPart, len(parts))
	for i := range lanes {
		lanes[i].beforeID = before
	}
	var runs []*store.Run
	for len(runs) < limit {
		first := -1
		for i := range lanes {
			l := &lanes[i]
			if len(l.runs) == 0 && !l.exhausted {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				page, err := listPage(x, q, args, parts[i], l.beforeID, ahead)
				if err != nil {
					return nil, err
				}
				l.runs, l.exhausted = page, len(page) < ahead
			}
			if len(l.runs) > 0 && (first < 0 || bytes.Compare(l.runs[0].UUID[:], lanes[first].runs[0].UUID[:]) > 0) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		l := &lanes[first]
		runs, l.beforeID, l.runs = append(runs, l.runs[0]), l.runs[0].UUID, l.runs[1:]
	}
	return runs, nil
}

// SearchRuns implements store.OverviewStore. The runs of all shards are stored together, so it examines as many runs as in all shards of PostgreSQL.
func (s *database) SearchRuns(ctx context.Context, f store.Filter, before uuid.UUID, examine int) (found []uuid.UUID, reached uuid.UUID, err error) {
	_, before = f.UUIDRange(before)
	examine = max(examine, 1) * store.ShardCount
	err = s.withReadConn(ctx, "search", func(x executor) error {
		args, n := filterArgs(&f), 0
		args[1], args[2] = bindUUID(before), int64(examine)
		return x.query(qRunsSearch, func(v []driver.Value) error {
			c := columnReader{values: v}
			id, matches := c.uuid(), c.int() != 0
			if n++; n == examine {
				reached = id
			}
			if matches {
				found = append(found, id)
			}
			return c.err
		}, args...)
	})
	return found, reached, err
}
