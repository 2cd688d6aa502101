package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var lists = []test{
	{"an empty database", listEmpty},
	{"newest first, in pages", listPages},
	{"newest first, if most runs are in one shard", listOneShard},
	{"each filter, and several", listFilters},
	{"by tag", listTags},
	{"every two filters", listPairs},
	{"a prefix is bytes, not a pattern", listPrefix},
	{"rows are whole, but for input and output", listRows},
	{"every workflow and queue is found bytewise", listNames},
}

func (b *fixture) list(f store.Filter, before uuid.UUID, limit int) []*store.Run {
	b.Helper()
	got, err := b.store.ListRuns(b.ctx, f, before, limit)
	if err != nil {
		b.Fatalf("List: %v", err)
	}
	return got
}

// wantList compares the runs that a filter finds, read in pages, with the chosen runs of all,
// newest first.
func (b *fixture) wantList(what string, f store.Filter, all []store.Run, chosen func(store.Run) bool) {
	b.Helper()
	var want []store.Run
	for _, r := range all {
		if chosen(r) {
			want = append(want, r)
		}
	}
	slices.SortFunc(want, func(l, r store.Run) int { return bytes.Compare(r.UUID[:], l.UUID[:]) })
	for _, limit := range []int{1000, 100, 7} {
		var got []*store.Run
		for before := (uuid.UUID{}); ; before = got[len(got)-1].UUID {
			page := b.list(f, before, limit)
			if len(page) != min(limit, len(want)-len(got)) {
				b.Errorf("%s: %d rows in a page of %d, and %d are left", what, len(page), limit, len(want)-len(got))
			}
			got = append(got, page...)
			if len(page) == 0 || len(got) > len(want) {
				break
			}
		}
		for i := range min(len(got), len(want)) {
			if got[i].UUID != want[i].UUID {
				b.Errorf("%s, pages of %d: row %d is %s, want %s", what, limit, i, quoteName(got[i].Name), quoteName(want[i].Name))
				break
			}
		}
		if len(got) != len(want) {
			b.Errorf("%s, pages of %d: got %d rows, want %d", what, limit, len(got), len(want))
		}
	}
}

func listEmpty(b *fixture) {
	for _, f := range []store.Filter{
		{},
		{Workflow: "flow", Queue: "queue", Statuses: []store.Status{store.Running}, NamePrefix: "order", OnlyRoots: true},
		{Tag: store.Tag{Key: "team"}},
		{Tag: store.Tag{Key: "team", Value: "red"}, CreatedAfter: b.now, CreatedBefore: b.afterStart(time.Hour)},
	} {
		if got := b.list(f, uuid.UUID{}, 10); len(got) != 0 {
			b.Errorf("%+v: got %d rows, want none", f, len(got))
		}
	}
}

func listPages(b *fixture) {
	var all []store.Run
	batch := &store.Batch{}
	for i := range 60 {
		r := b.newRunningRun(fmt.Sprint("order-", i)) // the runs are in many shards
		all = append(all, r)
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: r})
	}
	b.commit(batch)
	b.wantList("all", store.Filter{}, all, func(store.Run) bool { return true })
	middle := all[30].UUID
	if got := b.list(store.Filter{}, middle, 1); len(got) != 1 || bytes.Compare(got[0].UUID[:], middle[:]) >= 0 {
		b.Errorf("the page before %s: got %v", middle, got)
	}
	if got := b.list(store.Filter{}, uuid.UUID{15: 1}, 10); len(got) != 0 {
		b.Errorf("before the oldest: got %d rows", len(got))
	}
}

// listOneShard pages through runs most of which are in one shard, as the children of one run are.
func listOneShard(b *fixture) {
	var all []store.Run
	batch := &store.Batch{}
	for i := range 180 {
		r := b.newRunningRun(fmt.Sprint("order-", i))
		if i%6 != 0 {
			r.UUID[15] = 5
		}
		if i%4 == 0 {
			r.Workflow = "other"
		}
		all = append(all, r)
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: r})
	}
	b.commit(batch)
	b.wantList("all", store.Filter{}, all, func(store.Run) bool { return true })
	b.wantList("one workflow", store.Filter{Workflow: "other"}, all, func(r store.Run) bool { return r.Workflow == "other" })
}

// someOwner executes some of the runs that listed commits.
var someOwner = uuid.MustParse("0199d0a0-0000-7000-8000-000000000007")

// commitDiverseRuns commits runs that differ in everything that a filter can test.
func (b *fixture) commitDiverseRuns() (all []store.Run) {
	b.Helper()
	batch := &store.Batch{}
	for i := range 72 { // with the children more than one for each shard
		r := b.newRunningRun(fmt.Sprintf("%s-%d", []string{"order", "Order", "trip"}[i%3], i))
		r.Workflow, r.Queue = []string{"flow", "other"}[i%2], []string{"queue", "slow", "fast"}[i/2%3]
		r.CreatedAt, r.Version = b.afterStart(time.Duration(i)*time.Second), []string{"v1", "", "v2", "v1"}[i%4]
		if i%7 < 3 {
			r.Owner = owner(someOwner)
		}
		all = append(all, r)
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: r})
	}
	b.commit(batch)
	for i := range all[:12] {
		child := b.commitRunningChild(all[i], fmt.Sprint("order child ", i))
		child.CreatedAt = b.now
		all = append(all, child)
	}
	for i := range all {
		switch i % 5 {
		case 1:
			b.commitOwnershipEnd(b.park(all[i], time.Time{}))
			all[i].Status, all[i].Owner = store.Waiting, uuid.NullUUID{}
		case 2:
			end := b.newCompletion(all[i].UUID, epochAt(1))
			end.EndedAt = b.afterStart(time.Duration(i) * time.Minute)
			b.commitOwnershipEnd(end)
			all[i].Status, all[i].EndedAt, all[i].Owner = store.Completed, end.EndedAt, uuid.NullUUID{}
		}
	}
	return all
}

func listFilters(b *fixture) {
	all := b.commitDiverseRuns()
	for what, c := range map[string]struct {
		filter store.Filter
		chosen func(store.Run) bool
	}{
		"a workflow":     {store.Filter{Workflow: "other"}, func(r store.Run) bool { return r.Workflow == "other" }},
		"a queue":        {store.Filter{Queue: "slow"}, func(r store.Run) bool { return r.Queue == "slow" }},
		"no such queue":  {store.Filter{Queue: "slo"}, func(store.Run) bool { return false }},
		"one status":     {store.Filter{Statuses: []store.Status{store.Waiting}}, func(r store.Run) bool { return r.Status == store.Waiting }},
		"several":        {store.Filter{Statuses: []store.Status{store.Completed, store.Paused, store.Waiting}}, func(r store.Run) bool { return r.Status != store.Running }},
		"no such status": {store.Filter{Statuses: []store.Status{store.Paused}}, func(store.Run) bool { return false }},
		"a prefix":       {store.Filter{NamePrefix: "order"}, func(r store.Run) bool { return strings.HasPrefix(r.Name, "order") }},
		"a whole name":   {store.Filter{NamePrefix: "trip-2"}, func(r store.Run) bool { return strings.HasPrefix(r.Name, "trip-2") }},
		"after, exclusively": {
			store.Filter{CreatedAfter: b.afterStart(20 * time.Second)}, func(r store.Run) bool { return r.CreatedAt.After(b.afterStart(20 * time.Second)) },
		},
		"before, exclusively": {
			store.Filter{CreatedBefore: b.afterStart(20 * time.Second)}, func(r store.Run) bool { return r.CreatedAt.Before(b.afterStart(20 * time.Second)) },
		},
		"between": {
			store.Filter{CreatedAfter: b.afterStart(10 * time.Second), CreatedBefore: b.afterStart(12 * time.Second)},
			func(r store.Run) bool { return r.CreatedAt.Equal(b.afterStart(11 * time.Second)) },
		},
		"roots": {store.Filter{OnlyRoots: true}, func(r store.Run) bool { return !r.Parent.Valid }},
		"everything": {
			store.Filter{
				Workflow: "flow", Queue: "queue", Statuses: []store.Status{store.Running}, NamePrefix: "order", OnlyRoots: true,
				CreatedAfter: b.now, CreatedBefore: b.afterStart(time.Hour),
			},
			func(r store.Run) bool {
				return r.Workflow == "flow" && r.Queue == "queue" && r.Status == store.Running && strings.HasPrefix(r.Name, "order") &&
					!r.Parent.Valid && r.CreatedAt.After(b.now)
			},
		},
	} {
		b.wantList(what, c.filter, all, c.chosen)
	}
}

func listTags(b *fixture) {
	all := b.commitDiverseRuns()
	has := make(map[uuid.UUID]map[string]string)
	for i, r := range all {
		tags := map[string]string{}
		if i%2 == 0 {
			tags["team.owner"] = []string{"red", "Red", "red "}[i%3]
		}
		if i%3 == 0 {
			tags["team"] = "red"
		}
		has[r.UUID] = tags
		for key, value := range tags {
			b.tag(r.UUID, store.Tag{Key: key, Value: value})
		}
	}
	for _, tag := range []store.Tag{
		{Key: "team.owner", Value: "red"}, {Key: "team.owner", Value: "red "}, {Key: "team", Value: "red"}, {Key: "team", Value: "blue"}, {Key: "tea", Value: "red"},
	} {
		b.wantList(fmt.Sprintf("tag %+v", tag), store.Filter{Tag: tag}, all, func(r store.Run) bool { return has[r.UUID][tag.Key] == tag.Value })
	}
	for _, key := range []string{"team.owner", "team", "tea", "Team"} {
		b.wantList("key "+key, store.Filter{Tag: store.Tag{Key: key}}, all, func(r store.Run) bool { return has[r.UUID][key] != "" })
	}
	b.wantList("a tag and more", store.Filter{Tag: store.Tag{Key: "team"}, Workflow: "flow", OnlyRoots: true, NamePrefix: "order"}, all, func(r store.Run) bool {
		return has[r.UUID]["team"] != "" && r.Workflow == "flow" && !r.Parent.Valid && strings.HasPrefix(r.Name, "order")
	})
}

// A condition sets a field of a filter, and reports whether a run matches that filter.
type condition struct {
	add  func(f *store.Filter)
	kept func(r store.Run) bool
}

func (b *fixture) conditions(all []store.Run, red map[uuid.UUID]bool) []condition {
	var some, parents []uuid.UUID
	for i, r := range all {
		if i%3 != 1 {
			some = append(some, r.UUID)
		}
		if i < 12 && i%2 == 0 {
			parents = append(parents, r.UUID)
		}
	}
	some, parents = append(some, store.NewUUID(3)), append(parents, store.NewUUID(5)) // of runs that do not exist
	some, parents = append(some, some[:3]...), append(parents, parents...)            // repeated ones select each run once
	tagged := func(r store.Run) bool { return red[r.UUID] }
	return []condition{
		{func(f *store.Filter) { f.Workflow = "other" }, func(r store.Run) bool { return r.Workflow == "other" }},
		{func(f *store.Filter) { f.Queue = "queue" }, func(r store.Run) bool { return r.Queue == "queue" }},
		{func(f *store.Filter) { f.Statuses = []store.Status{store.Running} }, func(r store.Run) bool { return r.Status == store.Running }},
		{func(f *store.Filter) { f.NamePrefix = "order" }, func(r store.Run) bool { return strings.HasPrefix(r.Name, "order") }},
		{func(f *store.Filter) { f.CreatedAfter = b.afterStart(9 * time.Second) }, func(r store.Run) bool { return r.CreatedAt.After(b.afterStart(9 * time.Second)) }},
		{func(f *store.Filter) { f.CreatedBefore = b.afterStart(30 * time.Second) }, func(r store.Run) bool { return r.CreatedAt.Before(b.afterStart(30 * time.Second)) }},
		{func(f *store.Filter) { f.OnlyRoots = true }, func(r store.Run) bool { return !r.Parent.Valid }},
		{func(f *store.Filter) { f.Tag.Key = "team" }, tagged},
		{func(f *store.Filter) { f.Tag = store.Tag{Key: "team", Value: "red"} }, tagged},
		{func(f *store.Filter) { f.Version = "v1" }, func(r store.Run) bool { return r.Version == "v1" }},
		{func(f *store.Filter) { f.Owner = someOwner }, func(r store.Run) bool { return r.Owner.UUID == someOwner }},
		{func(f *store.Filter) { f.EndedAfter = b.afterStart(7 * time.Minute) }, func(r store.Run) bool { return r.EndedAt.After(b.afterStart(7 * time.Minute)) }},
		{func(f *store.Filter) { f.EndedBefore = b.afterStart(32 * time.Minute) }, func(r store.Run) bool { return !r.EndedAt.IsZero() && r.EndedAt.Before(b.afterStart(32*time.Minute)) }},
		{func(f *store.Filter) { f.UUIDs = some }, func(r store.Run) bool { return slices.Contains(some, r.UUID) }},
		{func(f *store.Filter) { f.Parents = parents }, func(r store.Run) bool { return r.Parent.Valid && slices.Contains(parents, r.Parent.UUID) }},
	}
}

func listPairs(b *fixture) {
	all := b.commitDiverseRuns()
	red := make(map[uuid.UUID]bool)
	for i, r := range all {
		if i%4 != 3 {
			red[r.UUID] = true
			b.tag(r.UUID, store.Tag{Key: "team", Value: "red"})
		}
	}
	conditions := b.conditions(all, red)
	for i, one := range conditions {
		for _, two := range conditions[:i] {
			var f store.Filter
			two.add(&f)
			one.add(&f)
			want := 0
			for _, r := range all {
				if one.kept(r) && two.kept(r) {
					want++
				}
			}
			b.wantList(fmt.Sprintf("%+v", f), f, all, func(r store.Run) bool { return one.kept(r) && two.kept(r) })
			if len(f.UUIDs)+len(f.Parents) == 0 {
				b.wantFound(f, all, func(r store.Run) bool { return one.kept(r) && two.kept(r) })
			}
			got := b.list(f, uuid.UUID{}, 1000)
			for _, row := range got {
				i := slices.IndexFunc(all, func(r store.Run) bool { return r.UUID == row.UUID })
				if !one.kept(all[i]) || !two.kept(all[i]) {
					b.Errorf("%+v: got %s", f, row.Name)
				}
			}
			if len(got) != want {
				b.Errorf("%+v: got %d rows, want %d", f, len(got), want)
			}
		}
	}
}

// wantFound searches in parts, and compares what it finds with the chosen runs of all.
func (b *fixture) wantFound(f store.Filter, all []store.Run, chosen func(store.Run) bool) {
	b.Helper()
	for _, examine := range []int{1, 2, 1000} {
		var found []uuid.UUID
		parts := 0
		for before := (uuid.UUID{}); parts == 0 || before != (uuid.UUID{}); parts++ {
			some, reached, err := b.store.SearchRuns(b.ctx, f, before, examine)
			if err != nil || parts > len(all) {
				b.Fatalf("%+v, part %d: %v", f, parts, err)
			}
			found, before = append(found, some...), reached
		}
		if !slices.IsSortedFunc(found, func(l, r uuid.UUID) int { return bytes.Compare(r[:], l[:]) }) {
			b.Errorf("%+v: what is found in %d parts is not in order", f, parts)
		}
		for _, r := range all {
			if slices.Contains(found, r.UUID) != chosen(r) {
				b.Errorf("%+v: in %d parts run %s is found: %t", f, parts, quoteName(r.Name), !chosen(r))
			}
		}
		if examine == 1 && parts == 1 || examine == 1000 && parts > 1 {
			b.Errorf("%+v: %d runs of each shard are examined in %d parts", f, examine, parts)
		}
	}
}

func listPrefix(b *fixture) {
	var all []store.Run
	batch := &store.Batch{}
	for _, name := range append(oddNames(), "100%", "100 %", "a_b", "aXb", `a\b`, `a\%`, "ord*r", "ord?r", "[ord]er", "a\U0010ffffz", "\U0010ffff\U0010ffff") {
		if name == "" || slices.ContainsFunc(all, func(r store.Run) bool { return r.Name == name }) {
			continue
		}
		r := b.newRunningRun(name)
		all = append(all, r)
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: r})
	}
	b.commit(batch)
	for _, prefix := range []string{
		"%", "_", "a_", "a", "A", `a\`, "100%", "100", "ord*", "ord?", "[", "\u00e4", "a\u0308", "\U0001F468", " ", "\U0010ffff", "a\U0010ffff", "\uffff", all[len(all)-12].Name,
	} {
		b.wantList("prefix "+quoteName(prefix), store.Filter{NamePrefix: prefix}, all, func(r store.Run) bool { return strings.HasPrefix(r.Name, prefix) })
	}
}

func listRows(b *fixture) {
	r := b.newRunningRun("order-42")
	r.Version, r.Trace, r.Deadline = "v1", "trace", b.afterStart(24*time.Hour)
	b.commitStart(r)
	b.controlExistingRuns(store.VerbPause, r.UUID)
	child := b.newRunningRun("charge")
	failed := b.commitRunningRun("failed")
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: failed.UUID, Epoch: epochAt(1), Status: store.Failed, Error: []byte(`"no"`), EndedAt: b.now})
	completed := b.commitRunningRun("completed")
	b.commitOwnershipEnd(b.newCompletion(completed.UUID, epochAt(1)))
	parent := b.commitRunningRun("parent")
	child.UUID, child.Parent, child.Detached = store.NewChildUUID(parent.UUID), owner(parent.UUID), true
	b.commitChild(child, epochAt(1))
	for _, id := range []uuid.UUID{r.UUID, failed.UUID, completed.UUID, child.UUID} {
		want := b.row(id)
		want.Input, want.Output = nil, nil
		got := b.list(store.Filter{NamePrefix: want.Name}, uuid.UUID{}, 10)
		if len(got) != 1 {
			b.Errorf("%s: got %d rows, want one", want.Name, len(got))
			continue
		}
		wantRun(b, "listed: "+want.Name, *got[0], want)
	}
}

func listNames(b *fixture) {
	var all []store.Run
	batch := &store.Batch{}
	for _, name := range oddNames() {
		if name == "" || len(name) > 1000 {
			continue // an empty name is no filter; two long names are too long for one index entry
		}
		r := b.newRunningRun("")
		r.Workflow, r.Queue = name, name
		all = append(all, r)
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: r})
	}
	b.commit(batch)
	for _, r := range all {
		for _, f := range []store.Filter{{Workflow: r.Workflow}, {Queue: r.Queue}} {
			if got := b.list(f, uuid.UUID{}, 10); len(got) != 1 || got[0].UUID != r.UUID {
				b.Errorf("%s: got %d rows, want the one run", quoteName(r.Workflow), len(got))
			}
		}
	}
}
