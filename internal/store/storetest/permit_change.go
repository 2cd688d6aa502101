package storetest

import (
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

func (b *fixture) setLimit(s store.LimitSettings) {
	b.Helper()
	if err := b.store.ChangeLimit(b.ctx, store.LimitChangeRequest{Name: "l", Settings: s, Now: b.now, Actor: "ann"}); err != nil {
		b.Fatalf("ChangeLimit: %v", err)
	}
}

func permitRateChanged(b *fixture) {
	slow := store.LimitSettings{Rate: 1, Period: 24 * time.Hour, Burst: 3}
	fast := store.LimitSettings{Rate: 10, Period: time.Second, Burst: 1}
	var asks []*store.PermitRequest
	for _, r := range b.runsNamed(10) {
		asks = append(asks, b.newPermitRequest(r, slow))
	}
	if n := b.requestPermits(b.now, asks[:4]...); n != 3 {
		b.Fatalf("%d of a burst of 3 were granted", n)
	}
	b.setLimit(fast)
	b.requestPermits(b.afterStart(time.Second), asks[3])
	if due := b.afterStart(1100 * time.Millisecond); asks[3].RetryAt.After(due) {
		b.Errorf("a step may ask again at %v, want %v at most: the rate was raised to 10 a second after three days were used up", asks[3].RetryAt, due)
	}
	if n := b.requestPermits(b.afterStart(1100*time.Millisecond), asks[3:5]...); n != 1 {
		b.Errorf("%d were granted 100 ms later, want 1", n)
	}
	if n := b.requestPermits(b.afterStart(1200*time.Millisecond), asks[4:6]...); n != 1 {
		b.Errorf("%d were granted another 100 ms later, want 1", n)
	}
	b.setLimit(slow)
	if n := b.requestPermits(b.afterStart(2*time.Second), asks[5:]...); n > 3 {
		b.Errorf("%d were granted after the rate was lowered, want at most its burst", n)
	}
	if n := b.requestPermits(b.afterStart(time.Hour), asks[8:]...); n != 0 {
		b.Errorf("%d were granted an hour later", n)
	}
}

func permitUnbounded(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	runs := b.runsNamed(4)
	first, second, third, fourth := b.newPermitRequest(runs[0], one), b.newPermitRequest(runs[1], one), b.newPermitRequest(runs[2], one), b.newPermitRequest(runs[3], one)
	for i, a := range []*store.PermitRequest{first, second, third} {
		b.requestPermits(b.afterStart(time.Duration(i)*time.Millisecond), a)
	}
	if found, err := b.store.DeleteLimit(b.ctx, store.DeleteOrResetRequest{Name: "l"}); err != nil || !found {
		b.Fatalf("DeleteLimit: %v, %v", found, err)
	}
	b.returnPermits(b.afterStart(time.Second), first)
	if p, q := b.permitOf(second.Run), b.permitOf(third.Run); p.Status != store.PermitOffered || q.Status != store.PermitWaiting {
		b.Errorf("the first in line: %+v, the next: %+v; want the first to be woken, since it knows the declared bounds", p, q)
	}
	b.requestPermits(b.afterStart(2*time.Second), fourth)
	b.wantPermitOutcome("one that came later", fourth, store.Locked)
	b.requestPermits(b.afterStart(2*time.Second), second, third)
	b.wantPermitOutcome("the first in line", second, store.Written)
	b.wantPermitOutcome("the next", third, store.Locked)
}

func permitUnusedLines(b *fixture) {
	settings := store.LimitSettings{Concurrent: 2, Rate: 1, Period: 3 * time.Second, Burst: 2}
	var asks []*store.PermitRequest
	for i, r := range b.runsNamed(5) {
		a := b.newPermitRequest(r, settings)
		a.Key = fmt.Sprint("k", i)
		asks = append(asks, a)
	}
	held, spent, later, waits := asks[0], asks[1], asks[3], asks[4]
	waits.Key = held.Key
	held.Units, spent.Units = 2, 2
	if n := b.requestPermits(b.now, held, spent, asks[2]); n != 3 {
		b.Fatalf("%d of 3 were granted", n)
	}
	b.requestPermits(b.now, waits)
	b.returnPermits(b.now, spent, asks[2])
	b.requestPermits(b.afterStart(4*time.Second), later)
	b.returnPermits(b.afterStart(4*time.Second), later)
	sweep := func(what string, at time.Time, want int) {
		b.Helper()
		q, deleted := store.DeleteUnusedLimitKeysRequest{UsedBefore: at.Add(-time.Second), Now: at, Limit: 3}, 0
		for {
			got, err := b.store.DeleteUnusedLimitKeys(b.ctx, q)
			if err != nil {
				b.Fatalf("DeleteUnusedLines: %v", err)
			}
			deleted += got.Deleted
			if q.After = got.Next; q.After == (store.LimitKey{}) {
				break
			}
		}
		if deleted != want {
			b.Errorf("%s: %d lines were deleted, want %d", what, deleted, want)
		}
	}
	sweep("while the rates are used up", b.afterStart(2*time.Second), 0)
	sweep("one rate is free again", b.afterStart(4*time.Second), 1) // that of k2; k1 has used up six seconds
	sweep("the other one too", b.afterStart(6500*time.Millisecond), 1)
	sweep("that of the last key too", b.afterStart(8*time.Second), 1)
	sweep("a step executes, and one waits", b.afterStart(50*time.Second), 0)
	b.wantPermitOutcome("a step that waits in a line that stays", waits, store.Locked)
	asks[2].Attempt = 2
	b.requestPermits(b.afterStart(8*time.Second), asks[2])
	b.wantPermitOutcome("a deleted line", asks[2], store.Written)
}
