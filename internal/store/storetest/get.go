package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var gets = []test{
	{"by name, by ID, unknown, many", getMany},
	{"a root without an ID is named by its UUID", getUnnamed},
	{"the ID is preferred to a name that looks like it", getPreferred},
	{"only the canonical form is an ID", getCanonical},
	{"a history is its run's alone", getHistory},
	{"a child by its ID only", getChild},
	{"none", func(b *bed) { b.get() }},
	{"with the payloads that are wanted", getPayloads},
	{"statuses", getStatuses},
}

func getMany(b *bed) {
	var refs []string
	var want []*store.Run
	for i := range 150 {
		r := b.started(fmt.Sprint("order-", i))
		refs = append(refs, r.Name, "unknown-"+r.Name, r.ID.String(), uuid.NewString())
		want = append(want, &r, nil, &r, nil)
	}
	refs, want = append(refs, refs[0], refs[2], ""), append(want, want[0], want[2], nil)
	for i, got := range b.get(refs...) {
		switch {
		case (got == nil) != (want[i] == nil):
			b.Errorf("Get %d, %q: there is %v, want %v", i, refs[i], got != nil, want[i] != nil)
		case got != nil:
			wantRun(b, fmt.Sprintf("Get %d, %q", i, refs[i]), *got, *want[i])
		}
	}
}

func getUnnamed(b *bed) {
	r := b.started("")
	if r.Name != r.ID.String() {
		b.Fatalf("name %q, want the ID %s", r.Name, r.ID)
	}
	wantRun(b, "by its UUID text", b.row(r.ID), r)
	again := b.commitStart(b.running(r.Name))
	wantOutcome(b, "a start named after it", again.Outcome, store.Adopted)
}

func getPreferred(b *bed) {
	r := b.started("order-42")
	shadow := b.running(r.ID.String())
	wantOutcome(b, "a start named after another run's ID", b.commitStart(shadow).Outcome, store.Written)
	wantRun(b, "by the ID", b.row(r.ID), r)
	wantRun(b, "by its own ID", b.row(shadow.ID), shadow)
}

func getCanonical(b *bed) {
	r := b.started("")
	id := r.ID.String()
	for _, other := range []string{strings.ToUpper(id), "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), id + " "} {
		if rows := b.get(other); rows[0] != nil {
			b.Errorf("Get %q: found %s, want nothing: as a name it is another", other, rows[0].ID)
		}
	}
	named := b.started(strings.ToUpper(id) + "-X")
	if rows := b.get(named.Name); rows[0] == nil || rows[0].ID != named.ID {
		b.Errorf("Get %q: got %v, want %s", named.Name, rows[0], named.ID)
	}
}

func getHistory(b *bed) {
	one, two := b.started("one"), b.started("two")
	wantSteps(b, "a run without steps", b.history(one.ID))
	b.commitStep(b.completed(two.ID, epochAt(1), "two's"), false)
	wantSteps(b, "still without", b.history(one.ID))
	wantSteps(b, "two's", b.history(two.ID), b.completed(two.ID, epochAt(1), "two's"))
	wantSteps(b, "no run", b.history(uuid.New()))
}

func getChild(b *bed) {
	parent := b.started("parent")
	child := b.running("")
	child.ID, child.Parent, child.Name = store.NewID(store.ShardOf(parent.ID)), owner(parent.ID), "charge"
	b.commitChild(child, epochAt(1))
	wantRun(b, "by its ID", b.row(child.ID), child)
	if rows := b.get("charge"); rows[0] != nil {
		b.Errorf("by its name: got %s, want nothing", rows[0].ID)
	}
}

func getPayloads(b *bed) {
	done, failed := b.started("done"), b.started("failed")
	b.commitRun(b.finish(done.ID, epochAt(1)))
	end := b.finish(failed.ID, epochAt(1))
	end.Status, end.Output, end.Error = store.Failed, nil, []byte(`{"message":"no"}`)
	b.commitRun(end)
	whole := b.get("done", "failed")
	for _, with := range []store.Payloads{store.NoPayloads, store.WithInput, store.WithOutcome, store.AllPayloads} {
		refs := []store.Ref{{Text: "done"}, {Text: failed.ID.String()}, {Text: "nobody"}}
		rows, err := b.s.Find(b.ctx, refs, with)
		if err != nil || len(rows) != 3 || rows[0] == nil || rows[1] == nil || rows[2] != nil {
			b.Fatalf("Find with %d: got %v, %v", with, rows, err)
		}
		for i, row := range rows[:2] {
			want := *whole[i]
			if with&store.WithInput == 0 {
				want.Input = nil
			}
			if with&store.WithOutcome == 0 {
				want.Output, want.Error = nil, nil
			}
			wantRun(b, fmt.Sprintf("%s with %d", want.Name, with), *row, want)
		}
	}
	if rows, err := b.s.Find(b.ctx, nil, store.AllPayloads); len(rows) != 0 || err != nil {
		b.Errorf("Find of none: got %v, %v", rows, err)
	}
}

func getStatuses(b *bed) {
	var ids []uuid.UUID
	var want []store.Status
	for i, status := range []store.Status{store.Running, store.Pending, store.Waiting, store.Paused, store.Completed, store.Failed, store.Cancelled} {
		r := b.started(fmt.Sprint(i))
		if status != store.Running {
			b.commitRun(store.RunWrite{ID: r.ID, Epoch: epochAt(1), Status: status, EndedAt: b.now})
		}
		ids, want = append(ids, r.ID, uuid.New(), r.ID), append(want, status, 0, status)
	}
	got, err := b.s.Statuses(b.ctx, ids)
	if err != nil || !slices.Equal(got, want) {
		b.Errorf("Statuses: got %v, %v, want %v", got, err, want)
	}
	if got, err := b.s.Statuses(b.ctx, nil); len(got) != 0 || err != nil {
		b.Errorf("Statuses of none: got %v, %v", got, err)
	}
}
