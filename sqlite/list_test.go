package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Pages of any size together list every run once, newest first, whichever index they
// come from.
func TestListPages(t *testing.T) {
	s := openTest(t)
	batch := &store.Batch{}
	var all []uuid.UUID
	for i := range 150 {
		w := newPending(fmt.Sprintf("order-%03d", i))
		w.Tags = []store.Tag{{Key: "team", Value: string(rune('a' + i%3))}}
		if i%2 == 0 {
			w.Run.Workflow = "even"
		}
		batch.Starts = append(batch.Starts, w)
		all = append(all, w.Run.UUID)
	}
	commit(t, s, batch)
	slices.SortFunc(all, func(l, r uuid.UUID) int { return bytes.Compare(r[:], l[:]) })
	for _, f := range []store.Filter{
		{},
		{Tag: store.Tag{Key: "team"}},
		{Tag: store.Tag{Key: "team", Value: "b"}},
		{NamePrefix: "order-"},
		{NamePrefix: "order-1"},
		{NamePrefix: "order-1", Tag: store.Tag{Key: "team", Value: "b"}},
		{Workflow: "even", Statuses: []store.Status{store.Pending, store.Running}, OnlyRoots: true},
		{Statuses: []store.Status{store.Failed}},
		{NamePrefix: "\xff"},
	} {
		var want []uuid.UUID
		byID := map[uuid.UUID]*store.StartWrite{}
		for _, w := range batch.Starts {
			byID[w.Run.UUID] = w
		}
		for _, id := range all {
			w := byID[id]
			if (f.Workflow == "" || w.Run.Workflow == f.Workflow) && (f.Tag.Value == "" || w.Tags[0] == f.Tag) &&
				bytes.HasPrefix([]byte(w.Run.Name), []byte(f.NamePrefix)) && (f.Statuses == nil || slices.Contains(f.Statuses, w.Run.Status)) {
				want = append(want, id)
			}
		}
		for _, size := range []int{1, 20, 149, 150, 200} {
			if size == 1 && len(want) > 20 {
				continue
			}
			var got []uuid.UUID
			var before uuid.UUID
			for {
				page, err := s.ListRuns(t.Context(), f, before, size)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range page {
					if r.Input != nil || r.Name == "" {
						t.Fatalf("%+v", r)
					}
					got, before = append(got, r.UUID), r.UUID
				}
				if len(page) < size {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%+v in pages of %d: %d runs, want %d", f, size, len(got), len(want))
			}
		}
	}
}

// With many names or tags the walk is along the primary key, to the same result.
func TestListWalks(t *testing.T) {
	s := openTest(t)
	edit(t, s.path,
		fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO durable_run (id, shard, name, workflow, queue, lane, status, epoch, created_at)
			SELECT CAST(randomblob(15) || char(i %% 64) AS BLOB), i %% 64, 'x' || i, 'test', 'default', 0, 5, 1, 0 FROM n`, maxSortedRuns),
		"INSERT INTO durable_tag SELECT shard, id, 'any', 'v' FROM durable_run")
	want, err := s.ListRuns(t.Context(), store.Filter{}, uuid.UUID{}, 100)
	if err != nil || len(want) != 100 {
		t.Fatal(len(want), err)
	}
	for _, f := range []store.Filter{{NamePrefix: "x"}, {Tag: store.Tag{Key: "any"}}, {NamePrefix: "x", Tag: store.Tag{Key: "any", Value: "v"}}} {
		got, err := s.ListRuns(t.Context(), f, uuid.UUID{}, 100)
		if err != nil || !slices.EqualFunc(got, want, func(l, r *store.Run) bool { return l.UUID == r.UUID }) {
			t.Errorf("%+v: %d runs, %v", f, len(got), err)
		}
	}
}

func TestTreeAndCounts(t *testing.T) {
	s := openTest(t)
	root := startTestRuns(t, s, 1)[0]
	one, two := newChild(root, "one"), newChild(root, "two")
	one.Run.Status, one.Run.Epoch = store.Running, epochAt(1)
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{one, two}})
	below := newChild(one.Run.UUID, "below")
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{below}})
	runs, err := s.RunTree(t.Context(), root, true)
	var got []uuid.UUID
	for _, r := range runs {
		got = append(got, r.UUID)
	}
	if want := []uuid.UUID{root, one.Run.UUID, two.Run.UUID, below.Run.UUID}; err != nil || !slices.Equal(got, want) {
		t.Fatal(got, want, err)
	}
	counts, err := s.RunTreeCounts(t.Context(), root, time.Now())
	if err != nil || len(counts.RunsByStatus) != 2 || counts.RunsByStatus[store.Running] != 2 || counts.RunsByStatus[store.Pending] != 2 {
		t.Fatal(counts, err)
	}
	if runs, err := s.RunTree(t.Context(), store.NewUUID(1), true); err != nil || len(runs) > 0 {
		t.Fatal(runs, err)
	}
}

func TestRunProgress(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	at := now()
	step := func(name string, kind store.StepKind, status store.StepStatus) *store.StepWrite {
		w := newStep(run, name)
		w.Step.Kind, w.Step.Status = kind, status
		return w
	}
	asleep, slept := step("asleep", store.KindSleep, store.StepCompleted), step("slept", store.KindSleep, store.StepCompleted)
	asleep.Step.NextAt, slept.Step.NextAt = at.Add(1e9), at
	commit(t, s, &store.Batch{Steps: []*store.StepWrite{
		asleep, slept, step("done", store.KindStep, store.StepCompleted), step("busy", store.KindStep, store.StepStarted),
		step("m", store.KindMap, store.StepCompleted), step("m\x1f0", store.KindStep, store.StepCompleted), step("m\x1f1", store.KindStep, store.StepFailed),
		step("m\x1f2", store.KindStep, store.StepStarted), step("m\x1f3\x1fx", store.KindStep, store.StepCompleted), step("m 4", store.KindStep, store.StepCompleted),
	}})
	o, err := s.RunProgress(t.Context(), run, at)
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, p := range o.OpenCalls {
		open = append(open, p.Name)
	}
	if !slices.Equal(open, []string{"asleep", "busy", "m\x1f2"}) || len(o.Maps) != 1 || o.Maps[0].DoneCount != 2 || o.Maps[0].Step.Name != "m" {
		t.Fatalf("%q %+v", open, o.Maps)
	}
}

func TestTag(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	if ok, err := s.SetTags(t.Context(), store.NewUUID(1), []store.Tag{{Key: "k", Value: "v"}}, store.Epoch{}, store.ActorAndReason{}); ok || err != nil {
		t.Fatal(ok, err)
	}
	for _, c := range []struct{ set, want []store.Tag }{
		{[]store.Tag{{Key: "b", Value: "2"}, {Key: "a", Value: "1"}}, []store.Tag{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}},
		{[]store.Tag{{Key: "b", Value: "3"}, {Key: "a"}, {Key: "c"}}, []store.Tag{{Key: "b", Value: "3"}}},
	} {
		if ok, err := s.SetTags(t.Context(), run, c.set, store.Epoch{}, store.ActorAndReason{}); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if o, err := s.RunProgress(t.Context(), run, now()); err != nil || !slices.Equal(o.Tags, c.want) {
			t.Fatal(o.Tags, err)
		}
	}
}

func TestEventCursors(t *testing.T) {
	s := openTest(t)
	for _, run := range startTestRuns(t, s, 5) {
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: run, Epoch: epochAt(1), Status: store.Completed, EndedAt: now()}}})
	}
	seen := 0
	for cursor := ""; ; {
		events, err := s.Events(t.Context(), cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			if e.Type != store.EventCompleted || e.Name == "" || e.Workflow != "test" || e.At.IsZero() {
				t.Fatalf("%+v", e)
			}
			cursor = e.Cursor
			seen++
		}
	}
	if seen != 5 {
		t.Error(seen, "events")
	}
	for _, bad := range []string{"x", "-1", "01", "+1", " 1", "1 ", "99999999999999999999"} {
		if _, err := s.Events(t.Context(), bad, 1); !errors.Is(err, store.ErrBadData) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
