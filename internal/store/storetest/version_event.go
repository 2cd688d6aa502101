package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// versionEvents checks that the events tell which version has executed each segment of a run, and that claims which change no version
// write none.
func versionEvents(b *fixture) {
	b.report("v1", b.now)
	b.report("v2", b.afterStart(time.Second))
	r := b.ofVersion("the starter's")
	claim := func(version string, after time.Duration) {
		b.Helper()
		if got := b.claimAs(version, b.afterStart(after), nil); len(got) != 1 {
			b.Fatalf("%s claimed %v", version, got)
		}
	}
	release := func(after time.Duration) {
		b.Helper()
		row := b.row(r.UUID)
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: row.Epoch, Status: store.Pending, WakeAt: b.afterStart(after), Now: b.afterStart(after)})
	}
	claim("v1", time.Minute) // the first execution
	release(2 * time.Minute)
	claim("v1", 3*time.Minute)
	release(4 * time.Minute)
	claim("v2", 5*time.Minute)
	release(6 * time.Minute)
	claim(store.UnorderedVersionPrefix+"cafe", 7*time.Minute)
	release(8 * time.Minute)
	claim("v2", 9*time.Minute)
	release(10 * time.Minute)
	claim("v1", time.Hour) // v2 is silent
	b.holdForDrift(r.UUID, b.row(r.UUID).Epoch, "v1")
	q := b.query(b.afterStart(2 * time.Hour))
	known, err := b.store.WorkflowVersions(b.ctx, []string{"flow"})
	if err != nil {
		b.Fatal(err)
	}
	q.Versions = store.NewVersionClaimRules("v3", known, nil, q.Now)
	if got := b.claimHeldBy(q, r.UUID); got == nil || got.Version != "v3" {
		b.Fatalf("the held run: %+v", got)
	}
	last := b.commitRunningRun("the last run")
	b.commitOwnershipEnd(b.newCompletion(last.UUID, epochAt(1)))
	var got []string
	for _, e := range b.tail(last.UUID, 3) {
		if e.Type == store.EventVersionChanged && e.Run == r.UUID {
			got = append(got, fmt.Sprint(e.OldValue, " ", e.NewValue, " ", e.At.Sub(b.now)))
		}
	}
	if want := []string{"v1 v2 5m0s", "v2 v1 1h0m0s", "v1 v3 2h0m0s"}; !slices.Equal(got, want) {
		b.Errorf("the changes of the version are %q, want %q", got, want)
	}
}
