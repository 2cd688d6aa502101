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
	{"none", func(b *fixture) { b.get() }},
	{"with the payloads that are wanted", getPayloads},
	{"statuses", getStatuses},
}

func getMany(b *fixture) {
	var refs []string
	var want []*store.Run
	for i := range 150 {
		r := b.commitRunningRun(fmt.Sprint("order-", i))
		refs = append(refs, r.Name, "unknown-"+r.Name, r.UUID.String(), uuid.NewString())
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

func getUnnamed(b *fixture) {
	r := b.commitRunningRun("")
	if r.Name != r.UUID.String() {
		b.Fatalf("name %q, want the ID %s", r.Name, r.UUID)
	}
	wantRun(b, "by its UUID text", b.row(r.UUID), r)
	again := b.commitStart(b.newRunningRun(r.Name))
	wantOutcome(b, "a start named after it", again.Outcome, store.AlreadyRecorded)
}

func getPreferred(b *fixture) {
	r := b.commitRunningRun("order-42")
	shadow := b.newRunningRun(r.UUID.String())
	wantOutcome(b, "a start named after another run's ID", b.commitStart(shadow).Outcome, store.Written)
	wantRun(b, "by the ID", b.row(r.UUID), r)
	wantRun(b, "by its own ID", b.row(shadow.UUID), shadow)
}

func getCanonical(b *fixture) {
	r := b.commitRunningRun("")
	id := r.UUID.String()
	for _, other := range []string{strings.ToUpper(id), "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), id + " "} {
		if rows := b.get(other); rows[0] != nil {
			b.Errorf("Get %q: found %s, want nothing: as a name it is another", other, rows[0].UUID)
		}
	}
	named := b.commitRunningRun(strings.ToUpper(id) + "-X")
	if rows := b.get(named.Name); rows[0] == nil || rows[0].UUID != named.UUID {
		b.Errorf("Get %q: got %v, want %s", named.Name, rows[0], named.UUID)
	}
}

func getHistory(b *fixture) {
	one, two := b.commitRunningRun("one"), b.commitRunningRun("two")
	wantSteps(b, "a run without steps", b.history(one.UUID))
	b.commitStep(b.completed(two.UUID, epochAt(1), "two's"), false)
	wantSteps(b, "still without", b.history(one.UUID))
	wantSteps(b, "two's", b.history(two.UUID), b.completed(two.UUID, epochAt(1), "two's"))
	wantSteps(b, "no run", b.history(uuid.New()))
}

func getChild(b *fixture) {
	parent := b.commitRunningRun("parent")
	child := b.newRunningRun("")
	child.UUID, child.Parent, child.Name = store.NewUUID(store.ShardOf(parent.UUID)), owner(parent.UUID), "charge"
	b.commitChild(child, epochAt(1))
	wantRun(b, "by its ID", b.row(child.UUID), child)
	if rows := b.get("charge"); rows[0] != nil {
		b.Errorf("by its name: got %s, want nothing", rows[0].UUID)
	}
}

func getPayloads(b *fixture) {
	done, failed := b.commitRunningRun("done"), b.commitRunningRun("failed")
	b.commitOwnershipEnd(b.newCompletion(done.UUID, epochAt(1)))
	end := b.newCompletion(failed.UUID, epochAt(1))
	end.Status, end.Output, end.Error = store.Failed, nil, []byte(`{"message":"no"}`)
	b.commitOwnershipEnd(end)
	whole := b.get("done", "failed")
	for _, with := range []store.PayloadSelection{store.NoPayloads, store.WithInput, store.WithOutputAndError, store.AllPayloads} {
		refs := []store.RunRef{{UUIDOrName: "done"}, {UUIDOrName: failed.UUID.String()}, {UUIDOrName: "nobody"}}
		rows, err := b.store.GetRunsSelectingPayloads(b.ctx, refs, with)
		if err != nil || len(rows) != 3 || rows[0] == nil || rows[1] == nil || rows[2] != nil {
			b.Fatalf("Find with %d: got %v, %v", with, rows, err)
		}
		for i, row := range rows[:2] {
			want := *whole[i]
			if with&store.WithInput == 0 {
				want.Input = nil
			}
			if with&store.WithOutputAndError == 0 {
				want.Output, want.Error = nil, nil
			}
			wantRun(b, fmt.Sprintf("%s with %d", want.Name, with), *row, want)
		}
	}
	if rows, err := b.store.GetRunsSelectingPayloads(b.ctx, nil, store.AllPayloads); len(rows) != 0 || err != nil {
		b.Errorf("Find of none: got %v, %v", rows, err)
	}
}

func getStatuses(b *fixture) {
	var ids []uuid.UUID
	var want []store.Status
	for i, status := range []store.Status{store.Running, store.Pending, store.Waiting, store.Paused, store.Completed, store.Failed, store.Cancelled} {
		r := b.commitRunningRun(fmt.Sprint(i))
		if status != store.Running {
			b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: status, EndedAt: b.now})
		}
		ids, want = append(ids, r.UUID, uuid.New(), r.UUID), append(want, status, 0, status)
	}
	got, err := b.store.Statuses(b.ctx, ids)
	if err != nil || !slices.Equal(got, want) {
		b.Errorf("Statuses: got %v, %v, want %v", got, err, want)
	}
	if got, err := b.store.Statuses(b.ctx, nil); len(got) != 0 || err != nil {
		b.Errorf("Statuses of none: got %v, %v", got, err)
	}
}
