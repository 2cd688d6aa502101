package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var limits = []test{
	{"the bounds of an operator apply, then those of the newest version", limitBounds},
	{"bounds after a clock that was set back", limitBoundsAfterClockSetBack},
	{"the versions that have declared a limit before", olderLimitVersions},
	{"lines in which a step waits", waitingLines},
}

func limitBounds(b *fixture) {
	change := func(c store.LimitChangeRequest) {
		b.Helper()
		c.Name, c.Now = "l", b.now
		if err := b.store.ChangeLimit(b.ctx, c); err != nil {
			b.Fatalf("ChangeLimit: %v", err)
		}
	}
	want := func(what string, concurrent int, version string, set bool) {
		b.Helper()
		all, err := b.store.Limits(b.ctx, b.now)
		if err != nil || len(all) != 1 {
			b.Fatalf("Limits: %v, %v", all, err)
		}
		if l := all[0]; l.Name != "l" || l.Concurrent != concurrent || l.DeclaredVersion != version || (l.OperatorSettings != nil) != set {
			b.Errorf("%s: %+v, want %d at once, declared by %q, set by an operator: %v", what, l, concurrent, version, set)
		}
	}
	declare := func(version string, started time.Duration, s store.LimitSettings) {
		b.Helper()
		a := b.newPermitRequest(b.commitRunningRun(fmt.Sprint("code of ", version, started, s)), s)
		b.permits(&store.PermitBatch{Version: version, WorkerStarted: b.afterStart(started - 2*time.Hour), Requests: []*store.PermitRequest{a}})
		b.returnPermits(b.now, a)
	}
	bound := func(n int) store.LimitSettings { return store.LimitSettings{Concurrent: n} }
	declare("v1", time.Second, bound(1))
	want("the first", 1, "v1", false)
	declare("v1", time.Second, bound(9))
	want("the same worker with other bounds", 1, "v1", false)
	declare("v1", 0, bound(8))
	want("a worker of the same version that started before", 1, "v1", false)
	declare("v1", time.Minute, bound(2))
	want("a worker of the same version that started later", 2, "v1", false)
	declare("v2", time.Second, bound(3))
	want("the next version", 3, "v2", false)
	declare("v1", time.Hour, bound(2))
	want("an older version again", 3, "v2", false)
	declare("v3", 0, bound(3))
	want("a version with the same bounds", 3, "v3", false)
	declare("v2", time.Hour, bound(5))
	want("the version before it", 3, "v3", false)
	rate := store.LimitSettings{Concurrent: 7, Rate: 3, Period: time.Minute, Burst: 2}
	change(store.LimitChangeRequest{Settings: rate, Actor: "ann", Reason: "slow provider"})
	declare("v4", 0, bound(4))
	want("an operator's", 7, "v4", true)
	all, err := b.store.Limits(b.ctx, b.now)
	if l := all[0]; err != nil || l.LimitSettings != rate || *l.OperatorSettings != rate || l.SetBy != "ann" || l.SetReason != "slow provider" ||
		!l.SetAt.Equal(b.now) || l.DeclaredSettings == nil || l.DeclaredSettings.Concurrent != 4 {
		b.Errorf("%+v, %v", l, err)
	}
	runs := b.runsNamed(3)
	asks := []*store.PermitRequest{b.newPermitRequest(runs[0], bound(1)), b.newPermitRequest(runs[1], bound(1)), b.newPermitRequest(runs[2], bound(1))}
	for _, a := range asks {
		a.Key = "another key"
	}
	if n := b.requestPermits(b.now, asks...); n != 2 {
		b.Errorf("%d of 3 were granted: the row says at most two at one moment", n)
	}
	if all, err = b.store.Limits(b.ctx, b.now); err != nil || all[0].Held != 2 || all[0].Waiting != 1 {
		b.Errorf("in use: %+v, %v, want 2 held and 1 waiting", all[0].LimitUse, err)
	}
	b.wantChange("set", all[0].LastChange, store.OperatorChange{Verb: store.OperatorSet, At: b.now, By: "ann", Reason: "slow provider"})
	declare("v5", 0, store.LimitSettings{Concurrent: 5, Rate: 6, Period: 1500 * time.Millisecond, Burst: 7})
	for name, want := range map[string]bool{"l": true, "none": false} {
		if found, err := b.store.ResetLimitSettings(b.ctx, store.DeleteOrResetRequest{Name: name, Now: b.afterStart(time.Minute), Actor: "bob", Reason: "over"}); err != nil || found != want {
			b.Errorf("ResetLimitSettings of %q: %v, %v, want %v", name, found, err, want)
		}
	}
	want("after a reset", 5, "v5", false)
	all, err = b.store.Limits(b.ctx, b.now)
	if l := all[0]; err != nil || l.LimitSettings != *l.DeclaredSettings || l.SetBy != "" || !l.SetAt.IsZero() {
		b.Errorf("after a reset: %+v, %v", l, err)
	}
	b.wantChange("reset", all[0].LastChange, store.OperatorChange{Verb: store.OperatorReset, At: b.afterStart(time.Minute), By: "bob", Reason: "over"})
	for _, want := range []bool{true, false} {
		if found, err := b.store.DeleteLimit(b.ctx, store.DeleteOrResetRequest{Name: "l"}); err != nil || found != want {
			b.Errorf("DeleteLimit: %v, %v, want %v", found, err, want)
		}
	}
}

// limitBoundsAfterClockSetBack declares bounds by workers that started an hour before the one that has declared the limit, by a clock that
// was set back.
func limitBoundsAfterClockSetBack(b *fixture) {
	declare := func(started time.Duration, concurrent, want int) {
		b.Helper()
		a := b.newPermitRequest(b.commitRunningRun(fmt.Sprint("started ", started, concurrent)), store.LimitSettings{Concurrent: concurrent})
		b.permits(&store.PermitBatch{Version: "v1", WorkerStarted: b.afterStart(started), Requests: []*store.PermitRequest{a}})
		b.returnPermits(b.now, a)
		if all, err := b.store.Limits(b.ctx, b.now); err != nil || len(all) != 1 || all[0].Concurrent != want {
			b.Errorf("a worker that started at %v declares %d: %+v, %v; want %d", started, concurrent, all, err, want)
		}
	}
	declare(time.Hour, 1, 1)
	declare(-time.Minute, 2, 2)
	declare(-time.Hour, 3, 2)
	declare(0, 4, 4)
	declare(-time.Minute, 5, 4)
}

// olderLimitVersions checks that the latest 64 versions that have declared a limit before are known, and no others.
func olderLimitVersions(b *fixture) {
	run := b.commitRunningRun("run")
	declare := func(version, want string) {
		b.Helper()
		a := b.newPermitRequest(run, store.LimitSettings{Concurrent: 1})
		b.permits(&store.PermitBatch{Version: version, WorkerStarted: b.now, Requests: []*store.PermitRequest{a}})
		b.returnPermits(b.now, a)
		if all, err := b.store.Limits(b.ctx, b.now); err != nil || len(all) != 1 || all[0].DeclaredVersion != want {
			b.Fatalf("version %s declares the limit: %+v, %v, want that %s has declared it", version, all, err, want)
		}
	}
	wantOlderVersions(b, declare)
}

// wantOlderVersions declares with many versions, and then with those of them that are known as older ones, or not.
func wantOlderVersions(b *fixture, declare func(version, want string)) {
	b.Helper()
	const known = 64
	for i := range known + 2 {
		declare(fmt.Sprint("v", i), fmt.Sprint("v", i))
	}
	last := fmt.Sprint("v", known+1)
	declare("v1", last)
	declare(fmt.Sprint("v", known), last)
	declare("v0", "v0")
	declare(last, "v0")
	declare("v2", "v0")
	declare("v1", "v1")
}

func waitingLines(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	var want []store.LimitKey
	for _, limit := range []string{"a", "b"} {
		for _, key := range []string{"", "k", "z"} {
			for range 3 {
				a := b.newPermitRequest(b.commitRunningRun(fmt.Sprint(limit, key, uuid.New())), one)
				a.Limit, a.Key = limit, key
				b.requestPermits(b.now, a)
			}
			want = append(want, store.LimitKey{Limit: limit, Key: key})
		}
	}
	held := b.newPermitRequest(b.commitRunningRun("held"), one)
	held.Limit = "held"
	b.requestPermits(b.now, held)
	var got []store.LimitKey
	for last := (store.LimitKey{}); ; {
		some, err := b.store.LimitKeysWithWaiters(b.ctx, last, 4)
		if err != nil {
			b.Fatalf("WaitingLines: %v", err)
		}
		if len(some) == 0 {
			break
		}
		got, last = append(got, some...), some[len(some)-1]
	}
	if !slices.Equal(got, want) {
		b.Errorf("got %v, want %v", got, want)
	}
}
