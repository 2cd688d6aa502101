package storetest

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/seed8ec063be/durable/internal/store"
)

var names = []test{
	{"every name is kept bytewise", nameSteps},
	{"every ID is kept bytewise", nameRoots},
	{"every queue and workflow is kept bytewise", namePairs},
}

// oddNames returns names that are all different, although some look alike.
func oddNames() []string {
	all := []string{
		"a", "A", "a ", " a", "a\t", "a\n", "ä", "a\u0308", "\u00e4 ", // the last three look alike
		`it's "quoted" \ and 'so'`, "%s %d %", "$1, ?1, :a, @b, {}", "{1,2}", "NULL", "null", "", "-- no", "; DROP TABLE step;",
		"\U0001F680 start", "\U0001F468\u200d\U0001F469", "日本語", "\u202eright to left", "\uffff", "\U0010ffff", "\x01\x7f",
		strings.Repeat(" ", 7), "B", "b", "_", "Z",
	}
	long := make([]byte, 2048) // does not compress, so an index must hold all bytes of it
	for i := range long {
		long[i] = byte('!' + rand.IntN('~'-'!'))
	}
	return append(all, string(long), string(long[:2047]), string(long[:2047])+" ")
}

func nameSteps(b *fixture) {
	r := b.commitRunningRun("")
	batch := &store.Batch{}
	var want []store.Step
	for _, name := range oddNames() {
		s := b.completed(r.UUID, epochAt(1), name)
		s.Output = []byte("the step " + name)
		batch.Steps = append(batch.Steps, &store.StepWrite{Step: s})
		want = append(want, s)
	}
	for _, when := range []string{"first", "replayed"} {
		b.commit(batch)
		for _, w := range batch.Steps {
			wantOutcome(b, "step "+quoteName(w.Step.Name)+", "+when, w.Outcome, store.Written)
		}
	}
	slices.SortFunc(want, func(l, r store.Step) int { return strings.Compare(l.Name, r.Name) })
	wantSteps(b, "history", b.history(r.UUID), want...)
	for _, w := range batch.Steps {
		second := w.Step
		second.Attempt = 2
		got := b.commitStep(second, false)
		wantOutcome(b, "second writer of "+quoteName(second.Name), got.Outcome, store.AlreadyRecorded)
		wantRecorded(b, "second writer of "+quoteName(second.Name), got.RecordedStep, w.Step)
	}
}

func nameRoots(b *fixture) {
	batch := &store.Batch{}
	var all []string
	for _, name := range oddNames() {
		if name == "" {
			continue // a root without a name gets its ID as name
		}
		all = append(all, name)
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: b.newRunningRun(name)})
	}
	b.commit(batch)
	rows := b.get(all...)
	for i, w := range batch.Starts {
		wantOutcome(b, "start "+quoteName(w.Run.Name), w.Outcome, store.Written)
		if rows[i] == nil {
			b.Errorf("Get %s: not found", quoteName(w.Run.Name))
			continue
		}
		wantRun(b, "Get "+quoteName(w.Run.Name), *rows[i], w.Run)
		again := b.commitStart(b.newRunningRun(w.Run.Name))
		wantOutcome(b, "second start of "+quoteName(w.Run.Name), again.Outcome, store.AlreadyRecorded)
		if again.ExistingRun == nil || again.ExistingRun.UUID != w.Run.UUID {
			b.Errorf("second start of %s: got %v attached, want %s", quoteName(w.Run.Name), again.ExistingRun, w.Run.UUID)
		}
	}
}

func namePairs(b *fixture) {
	var all []string
	for _, name := range oddNames() {
		if len(name) < 1000 { // two or more long names are too long for one index entry
			all = append(all, name)
		}
	}
	for i, name := range all {
		r := b.newPendingRun("", b.now)
		r.Queue, r.Workflow = name, all[len(all)-1-i]
		wantOutcome(b, "start", b.commitStart(r).Outcome, store.Written)
	}
	for i, name := range all {
		q := b.query(b.now)
		workflow := all[len(all)-1-i]
		q.Filter = store.NewClaimFilter([]string{workflow}, []string{name})
		got := b.claim(q).Runs
		if len(got) != 1 || got[0].Run.Queue != name || got[0].Run.Workflow != workflow {
			b.Errorf("claim from queue %s, workflow %s: got %v, want the one run there", quoteName(name), quoteName(workflow), describeClaims(got))
		}
	}
}
