package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

var histories = []test{
	{"parts are the whole", historyParts},
	{"a part takes what it may", historyBounded},
	{"of no run, and of one without checkpoints", historyNone},
	{"an outline has no payloads", historyOutline},
	{"chosen checkpoints have short payloads", historyCheckpoints},
	{"long ones are claimed with a rest", historyClaimed},
	{"long ones are taken over with a rest", historyTakenOver},
}

// long commits a run with one checkpoint of each given size in bytes, and returns its history.
func (b *fixture) long(name string, sizes ...int) (r store.Run, history []store.Step) {
	b.Helper()
	r = b.commitRunningRun(name)
	batch := &store.Batch{}
	for i, size := range sizes {
		s := b.completed(r.UUID, r.Epoch, fmt.Sprintf("s%03d", i))
		s.Output = bytes.Repeat([]byte("x"), size)
		if i%5 == 4 {
			s.Status, s.Output, s.Error = store.StepFailed, nil, s.Output
		}
		batch.Steps = append(batch.Steps, &store.StepWrite{Step: s})
		history = append(history, s)
	}
	b.commit(batch)
	return r, history
}

// readWholeHistory reads the parts of a history that the claim left out. It returns the whole history and the
// number of parts.
func (b *fixture) readWholeHistory(c store.ClaimedRun, most int) (steps []store.Step, parts int) {
	b.Helper()
	steps = c.History
	for rest := c.UnreadHistory; rest.Exists; parts++ {
		got, next, err := b.store.HistoryFrom(b.ctx, c.Run.UUID, rest.FirstStepName, most)
		if err != nil {
			b.Fatalf("HistoryFrom: %v", err)
		}
		if len(got) == 0 || got[0].Name != rest.FirstStepName {
			b.Fatalf("HistoryFrom %q: got %d checkpoints, want those from there", rest.FirstStepName, len(got))
		}
		steps, rest = append(steps, got...), next
	}
	return steps, parts
}

func historyParts(b *fixture) {
	r := b.commitRunningRun("")
	var want []store.Step
	batch := &store.Batch{}
	for i, name := range oddNames() {
		s := b.completed(r.UUID, r.Epoch, name)
		s.Output = []byte(strings.Repeat("y", 37*i))
		batch.Steps = append(batch.Steps, &store.StepWrite{Step: s})
		want = append(want, s)
	}
	b.commit(batch)
	slices.SortFunc(want, func(l, r store.Step) int { return strings.Compare(l.Name, r.Name) })
	for _, most := range []int{1, 100, 200, 1000, 5000, 1 << 20} {
		all := store.ClaimedRun{Run: r, UnreadHistory: store.UnreadHistory{Exists: true}}
		got, parts := b.readWholeHistory(all, most)
		wantSteps(b, fmt.Sprintf("parts of %d bytes", most), got, want...)
		if most == 1 && parts != len(want) || most == 1<<20 && parts != 1 {
			b.Errorf("%d checkpoints were read in %d parts of %d bytes", len(want), parts, most)
		}
	}
}

func historyOutline(b *fixture) {
	r := b.commitRunningRun("")
	batch := &store.Batch{}
	var want []store.Step
	for i, kind := range []store.StepKind{store.KindGraph, store.KindStep, store.KindChoice, store.KindKeyRenewal, store.KindMap, store.KindChild} {
		s := b.completed(r.UUID, r.Epoch, fmt.Sprint("s", 9-i))
		s.Kind, s.Seq, s.Output = kind, int32(2*i), []byte("1")
		batch.Steps = append(batch.Steps, &store.StepWrite{Step: s})
		if want = append(want, s); kind == store.KindStep || kind == store.KindChild {
			want[i].Output = nil
		}
	}
	failed := b.completed(r.UUID, r.Epoch, "failed")
	failed.Seq, failed.Status, failed.Output, failed.Error, failed.Failures = 20, store.StepFailed, nil, []byte("error"), []byte("failures")
	batch.Steps = append(batch.Steps, &store.StepWrite{Step: failed})
	failed.Error, failed.Failures = nil, nil
	b.commit(batch)
	got, err := b.store.HistoryOutline(b.ctx, r.UUID)
	if err != nil {
		b.Fatal(err)
	}
	wantSteps(b, "the outline", got, append(want, failed)...)
}

func historyCheckpoints(b *fixture) {
	r, all := b.long("", 20, 19, 21, 0, 5)
	for _, c := range []struct {
		names []string
		most  int
		want  []int
	}{
		{[]string{"s002", "s000", "nothing"}, 20, []int{0, 2}},
		{[]string{"s003", "s004"}, 0, []int{3, 4}},
		{[]string{"s001"}, -1, []int{1}},
		{nil, 20, nil},
	} {
		got, err := b.store.CheckpointsByName(b.ctx, r.UUID, c.names, c.most)
		if err != nil || len(got) != len(c.want) {
			b.Fatalf("%q: %d checkpoints, %v", c.names, len(got), err)
		}
		for i, n := range c.want {
			want := all[n]
			if got[i].OutputSize != len(want.Output) {
				b.Errorf("%s has a size of %d", want.Name, got[i].OutputSize)
			}
			if len(want.Output) > c.most {
				want.Output = nil
			}
			wantSteps(b, fmt.Sprintf("%q", c.names), []store.Step{got[i].Step}, want)
		}
	}
}

func historyBounded(b *fixture) {
	r, want := b.long("", 2000, 3000, 1000, 900_000, 10, 10)
	for _, c := range []struct {
		from    int
		most, n int
	}{
		{0, 1, 1},
		{0, 5000, 1},
		{0, 5300, 2},
		{0, 6500, 3},
		{0, 800_000, 3},
		{0, 1_000_000, 6},
		{3, 1, 1},
		{3, 10_000, 1},
		{4, 10_000, 2},
		{2, 10_000, 1},
		{5, 1, 1},
	} {
		got, rest, err := b.store.HistoryFrom(b.ctx, r.UUID, want[c.from].Name, c.most)
		if err != nil {
			b.Fatalf("HistoryFrom: %v", err)
		}
		wantSteps(b, fmt.Sprintf("from %d, %d bytes", c.from, c.most), got, want[c.from:c.from+c.n]...)
		next := store.UnreadHistory{}
		if end := c.from + c.n; end < len(want) {
			next = store.UnreadHistory{Exists: true, FirstStepName: want[end].Name}
		}
		if rest != next {
			b.Errorf("from %d, %d bytes: the rest is %+v, want %+v", c.from, c.most, rest, next)
		}
	}
}

func historyNone(b *fixture) {
	id, _ := store.NewRootIdentity("")
	for _, id := range []store.UUID{id, b.commitRunningRun("").UUID} {
		if got, rest, err := b.store.HistoryFrom(b.ctx, id, "", 1000); err != nil || len(got) != 0 || rest.Exists {
			b.Errorf("got %v, %+v, %v, want nothing", got, rest, err)
		}
	}
}

// wantWholeHistories compares claimed histories, including their rests, with the recorded ones. The
// histories of the runs in short must be complete in the claim.
func (b *fixture) wantWholeHistories(claims store.ClaimResult, want map[store.UUID][]store.Step, short ...store.UUID) {
	b.Helper()
	if len(claims.Runs) != len(want) {
		b.Fatalf("%d runs were claimed, want %d", len(claims.Runs), len(want))
	}
	for _, c := range claims.Runs {
		if c.UnreadHistory.Exists && slices.Contains(short, c.Run.UUID) {
			b.Errorf("a short history has a rest: %+v", c.UnreadHistory)
		}
		got, _ := b.readWholeHistory(c, 1<<20)
		wantSteps(b, "the history of "+c.Run.Name, got, want[c.Run.UUID]...)
	}
}

func historyClaimed(b *fixture) {
	want := make(map[store.UUID][]store.Step)
	var short []store.UUID
	for i, sizes := range [][]int{{10, 10}, {5_000_000}, {}, {10, 10, 2_000_000, 10}, {300_000, 300_000, 300_000, 300_000, 300_000, 300_000}, {100_000}} {
		r, history := b.long(fmt.Sprint("r", i), sizes...)
		want[r.UUID] = history
		if len(sizes) == 0 || sizes[len(sizes)-1] == 10 && len(sizes) == 2 || sizes[0] == 100_000 {
			short = append(short, r.UUID)
		}
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: r.Epoch, Status: store.Pending, WakeAt: b.now})
	}
	b.wantWholeHistories(b.claim(b.query(b.now)), want, short...)
}

func historyTakenOver(b *fixture) {
	want := make(map[store.UUID][]store.Step)
	var short []store.UUID
	for i, sizes := range [][]int{{10, 10}, {3_000_000, 3_000_000}, {}} {
		r, history := b.long(fmt.Sprint("r", i), sizes...)
		want[r.UUID] = history
		if len(sizes) != 2 || sizes[0] == 10 {
			short = append(short, r.UUID)
		}
	}
	b.wantWholeHistories(b.claim(b.query(b.afterStart(2*time.Hour))), want, short...)
}
