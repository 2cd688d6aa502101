package postgres

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// TestListMergesShards pages through runs of many shards with each of List's statements.
func TestListMergesShards(t *testing.T) {
	everyWay(t, func(t *testing.T, s *database) {
		at := now(t, s)
		var want []uuid.UUID // oldest first
		for i := range 20 {
			run := pending(at.Add(time.Duration(i) * time.Second))
			run.UUID, run.Name = store.NewRootIdentity(fmt.Sprintf("order\xf4\x8f\xbf\xbf%d", i))
			start := &store.StartWrite{Run: run, Tags: []store.Tag{{Key: "team", Value: "a"}, {Key: "n", Value: fmt.Sprint(i)}}}
			begin(t, s, start)
			want = append(want, run.UUID)
		}
		begin(t, s, &store.StartWrite{Run: pending(at)})
		slices.Reverse(want)
		for name, f := range map[string]store.Filter{
			"all":    {CreatedBefore: at.Add(time.Hour), Workflow: "flow", Queue: "default", Statuses: []store.Status{store.Running, store.Pending}, OnlyRoots: true},
			"prefix": {NamePrefix: "order\U0010ffff"},
			"tag":    {Tag: store.Tag{Key: "team", Value: "a"}, NamePrefix: "order"},
			"key":    {Tag: store.Tag{Key: "n"}},
		} {
			var got []uuid.UUID
			for before := (uuid.UUID{}); ; {
				page, err := s.ListRuns(t.Context(), f, before, 7)
				if err != nil {
					t.Fatal(name, err)
				}
				for _, run := range page {
					if run.Input != nil {
						t.Errorf("%s: the input was read", name)
					}
					if name != "all" || run.Name != run.UUID.String() {
						got = append(got, run.UUID)
					}
				}
				if len(page) < 7 {
					break
				}
				before = page[6].UUID
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %d runs, not %d, or in another order", name, len(got), len(want))
			}
		}
		for name, f := range map[string]store.Filter{
			"workflow": {Workflow: "other"}, "queue": {Queue: "other"}, "status": {Statuses: []store.Status{store.Failed}},
			"after": {CreatedAfter: at.Add(time.Hour)}, "before": {CreatedBefore: at}, "tag": {Tag: store.Tag{Key: "team", Value: "b"}},
			"prefix": {NamePrefix: "order-"}, "tag and status": {Tag: store.Tag{Key: "team", Value: "a"}, Statuses: []store.Status{store.Failed}},
		} {
			if got, err := s.ListRuns(t.Context(), f, uuid.UUID{}, 7); err != nil || len(got) != 0 {
				t.Errorf("another %s: %v, %v", name, got, err)
			}
		}
	})
}

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"a": "b", "az": "a{", "\ud7ff": "\ue000", "a\U0010ffff": "b", "ä": "å"} {
		if got := prefixUpperBound(prefix); got != want {
			t.Errorf("beyond %q is %q, not %q", prefix, got, want)
		}
	}
	if got := prefixUpperBound("\U0010ffff"); got <= "\U0010ffff\U0010ffff" {
		t.Errorf("beyond the last one is %q", got)
	}
}

// TestRunProgress reads waits, Maps and tags.
func TestRunProgress(t *testing.T) {
	everyWay(t, func(t *testing.T, s *database) {
		at := now(t, s)
		run := running(uuid.New(), at)
		begin(t, s, &store.StartWrite{Run: run, Tags: []store.Tag{{Key: "z", Value: "1"}, {Key: "a", Value: "2"}}})
		step := func(name string, kind store.StepKind, status store.StepStatus, next time.Time) *store.StepWrite {
			w := done(run.UUID, name, at)
			w.Step.Kind, w.Step.Status, w.Step.NextAt = kind, status, next
			return w
		}
		all := []*store.StepWrite{
			step("done", store.KindStep, store.StepCompleted, time.Time{}),
			step("slept", store.KindSleep, store.StepCompleted, at),
			step("sleeps", store.KindSleep, store.StepCompleted, at.Add(time.Second)),
			step("started", store.KindStep, store.StepStarted, time.Time{}),
			step("received", store.KindReceive, store.StepCompleted, at.Add(time.Hour)),
			step("map", store.KindMap, store.StepCompleted, time.Time{}),
			step("map\x1f0", store.KindStep, store.StepCompleted, time.Time{}),
			step("map\x1f1", store.KindStep, store.StepFailed, time.Time{}),
			step("map\x1f2", store.KindStep, store.StepStarted, time.Time{}),
			step("map\x1f2\x1fx", store.KindStep, store.StepCompleted, time.Time{}),
			step("map 2", store.KindStep, store.StepCompleted, time.Time{}),
			step("mapp\x1f0", store.KindStep, store.StepCompleted, time.Time{}),
		}
		commit(t, s, &store.Batch{Steps: all})
		if found, err := s.SetTags(t.Context(), run.UUID, []store.Tag{{Key: "z"}, {Key: "b", Value: "3"}, {Key: "a", Value: "4"}}, store.Epoch{}, store.ActorAndReason{}); err != nil || !found {
			t.Errorf("a tag: %v, %v", found, err)
		}
		if found, err := s.SetTags(t.Context(), uuid.New(), []store.Tag{{Key: "b", Value: "3"}}, store.Epoch{}, store.ActorAndReason{}); err != nil || found {
			t.Errorf("a tag of nobody: %v, %v", found, err)
		}
		o, err := s.RunProgress(t.Context(), run.UUID, at)
		if err != nil {
			t.Fatal(err)
		}
		var open []string
		for _, step := range o.OpenCalls {
			open = append(open, step.Name)
		}
		if !slices.Equal(open, []string{"map\x1f2", "sleeps", "started"}) {
			t.Errorf("open are %q", open)
		}
		if len(o.Maps) != 1 || o.Maps[0].Step.Name != "map" || o.Maps[0].DoneCount != 2 {
			t.Errorf("the maps are %+v", o.Maps)
		}
		if !slices.Equal(o.Tags, []store.Tag{{Key: "a", Value: "4"}, {Key: "b", Value: "3"}}) {
			t.Errorf("the tags are %v", o.Tags)
		}
	})
}

// TestTagsAreOfTheRunThatWasMade: a start that adopts a run sets no tags.
func TestTagsAreOfTheRunThatWasMade(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	first := &store.StartWrite{Run: pending(at), Tags: []store.Tag{{Key: "k", Value: "1"}}}
	second := &store.StartWrite{Run: first.Run, Tags: []store.Tag{{Key: "k", Value: "2"}, {Key: "l", Value: "2"}}}
	second.Run.UUID = store.NewUUID(store.ShardOf(first.Run.UUID))
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{first}})
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{second, first}})
	var tags int
	if err := s.userPool.QueryRow(t.Context(), "SELECT count(*) FROM durable.tag").Scan(&tags); err != nil || tags != 1 || second.Outcome != store.AlreadyRecorded {
		t.Errorf("%d tags, %v, outcome %d", tags, err, second.Outcome)
	}
}
