package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var tags = []test{
	{"set, replaced and removed", tagSet},
	{"with a start, if that creates the run", tagStart},
	{"a replayed start brings none back", tagReplay},
	{"no run", tagMissing},
	{"an ended run", tagEnded},
	{"by a run that is not running at the epoch any more", tagFenced},
	{"every key and value is kept bytewise", tagNames},
}

// tag sets tags of a run, which must exist.
func (b *fixture) tag(run uuid.UUID, tags ...store.Tag) {
	b.Helper()
	if found, err := b.store.SetTags(b.ctx, run, tags, store.Epoch{}, store.ActorAndReason{}); err != nil || !found {
		b.Fatalf("Tag: %v, %v, want the run to be found", found, err)
	}
}

func (b *fixture) wantTags(what string, run uuid.UUID, want ...store.Tag) {
	b.Helper()
	if got := b.outline(run, b.now).Tags; !slices.Equal(got, want) {
		b.Errorf("%s: tags %q, want %q", what, got, want)
	}
}

func tagSet(b *fixture) {
	r, other := b.commitRunningRun("r"), b.commitRunningRun("other")
	b.wantTags("new", r.UUID)
	red, blue, cost := store.Tag{Key: "team", Value: "red"}, store.Tag{Key: "team", Value: "blue"}, store.Tag{Key: "cost.centre", Value: "7"}
	b.tag(r.UUID, red, cost)
	b.tag(other.UUID, blue)
	b.wantTags("set", r.UUID, cost, red)
	b.tag(r.UUID, red)
	b.wantTags("set again", r.UUID, cost, red)
	b.tag(r.UUID, blue)
	b.wantTags("replaced", r.UUID, cost, blue)
	b.tag(r.UUID, store.Tag{Key: "cost.centre"}, red, store.Tag{Key: "never"})
	b.wantTags("removed", r.UUID, red)
	b.tag(r.UUID, store.Tag{Key: "team"})
	b.wantTags("all removed", r.UUID)
	b.tag(r.UUID)
	b.wantTags("another run's", other.UUID, blue)
	wantRun(b, "the run", b.row(r.UUID), r)
}

func tagStart(b *fixture) {
	red, blue := []store.Tag{{Key: "size", Value: "1"}, {Key: "team", Value: "red"}}, []store.Tag{{Key: "extra", Value: "2"}, {Key: "team", Value: "blue"}}
	first := &store.StartWrite{Run: b.newRunningRun("order-42"), Tags: red}
	for _, when := range []string{"first", "replayed"} {
		b.commit(&store.Batch{Starts: []*store.StartWrite{first}})
		wantOutcome(b, when, first.Outcome, store.Written)
		b.wantTags(when, first.Run.UUID, red...)
	}
	second := &store.StartWrite{Run: b.newRunningRun("order-42"), Tags: blue}
	b.commit(&store.Batch{Starts: []*store.StartWrite{second}})
	wantOutcome(b, "a second start", second.Outcome, store.AlreadyRecorded)
	b.wantTags("a second start", first.Run.UUID, red...)
	parent := b.commitRunningRun("parent")
	child := &store.StartWrite{Run: b.child(parent, "charge"), ParentEpoch: epochAt(1), Tags: blue}
	none := &store.StartWrite{Run: b.newRunningRun("none")}
	many := &store.StartWrite{Run: b.newRunningRun("many"), Tags: red}
	b.commit(&store.Batch{Starts: []*store.StartWrite{many, child, none}})
	b.wantTags("a child", child.Run.UUID, blue...)
	b.wantTags("one of many", many.Run.UUID, red...)
	b.wantTags("one without", none.Run.UUID)
}

// tagReplay repeats a start whose result was lost, after the tags of its run were changed.
func tagReplay(b *fixture) {
	red, blue := []store.Tag{{Key: "size", Value: "1"}, {Key: "team", Value: "red"}}, store.Tag{Key: "team", Value: "blue"}
	parent := b.commitRunningRun("parent")
	for _, w := range []*store.StartWrite{
		{Run: b.newRunningRun("root"), Tags: red},
		{Run: b.child(parent, "child"), ParentEpoch: epochAt(1), Tags: red},
	} {
		b.commit(&store.Batch{Starts: []*store.StartWrite{w}})
		b.tag(w.Run.UUID, store.Tag{Key: "size"}, blue)
		other := &store.StartWrite{Run: b.newRunningRun(""), Tags: red}
		b.commit(&store.Batch{Starts: []*store.StartWrite{w, other}})
		wantOutcome(b, w.Run.Name+", replayed", w.Outcome, store.Written)
		b.wantTags(w.Run.Name+", replayed after one was removed and one changed", w.Run.UUID, blue)
		b.wantTags("one that is new, beside it", other.Run.UUID, red...)
	}
}

func tagMissing(b *fixture) {
	for _, tags := range [][]store.Tag{{{Key: "team", Value: "red"}}, {{Key: "team"}}, nil} {
		if found, err := b.store.SetTags(b.ctx, uuid.New(), tags, store.Epoch{}, store.ActorAndReason{}); found || err != nil {
			b.Errorf("tags %q of no run: got %v, %v, want not found", tags, found, err)
		}
	}
}

func tagEnded(b *fixture) {
	r := b.commitRunningRun("")
	b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1)))
	b.tag(r.UUID, store.Tag{Key: "checked", Value: "yes"})
	b.wantTags("ended", r.UUID, store.Tag{Key: "checked", Value: "yes"})
}

func tagNames(b *fixture) {
	r := b.commitRunningRun("")
	var all []store.Tag
	for _, name := range oddNames() {
		if name == "" || len(name) > 1000 { // an empty value removes a tag; two long names are too long for one index entry
			continue
		}
		all = append(all, store.Tag{Key: name, Value: name})
	}
	b.tag(r.UUID, all...)
	slices.SortFunc(all, func(l, r store.Tag) int { return strings.Compare(l.Key, r.Key) })
	b.wantTags("set", r.UUID, all...)
	for _, tag := range all {
		if got := b.list(store.Filter{Tag: tag}, uuid.UUID{}, 10); len(got) != 1 {
			b.Errorf("the run is found by the tag %s: %d times, want once", quoteName(tag.Key), len(got))
		}
	}
}

func tagFenced(b *fixture) {
	r := b.commitRunningRun("r")
	red, blue, none := store.Tag{Key: "team", Value: "red"}, store.Tag{Key: "team", Value: "blue"}, store.Tag{Key: "team"}
	set := func(tag store.Tag, epoch store.Epoch, want bool) {
		b.Helper()
		if found, err := b.store.SetTags(b.ctx, r.UUID, []store.Tag{tag}, epoch, store.ActorAndReason{}); found != want || err != nil {
			b.Errorf("Tag %v at epoch %v: %v, %v, want %v", tag, epoch, found, err, want)
		}
	}
	set(red, r.Epoch, true)
	set(blue, r.Epoch.Next(1), false)
	set(none, store.Epoch{Count: r.Epoch.Count, Nonce: r.Epoch.Nonce + 1}, false)
	b.wantTags("at another epoch", r.UUID, red)
	b.commitOwnershipEnd(b.park(r, b.afterStart(time.Hour)))
	set(blue, r.Epoch, false)
	set(none, r.Epoch, false)
	b.wantTags("while it waits", r.UUID, red)
}
