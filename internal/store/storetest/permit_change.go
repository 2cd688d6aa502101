package storetest

import (
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

func (b *bed) setLimit(s store.LimitSettings) {
	b.Helper()
	if err := b.s.ChangeLimit(b.ctx, store.LimitChangeRequest{Name: "l", Settings: s, Now: b.now, By: "ann"}); err != nil {
		b.Fatalf("ChangeLimit: %v", err)
	}
}

func permitRateChanged(b *bed) {
	slow := store.LimitSettings{Rate: 1, Period: 24 * time.Hour, Burst: 3}
	fast := store.LimitSettings{Rate: 10, Period: time.Second, Burst: 1}
	var asks []*store.PermitRequest
	for _, r := range b.runsNamed(10) {
		asks = append(asks, b.ask(r, slow))
	}
	if n := b.asks(b.now, asks[:4]...); n != 3 {
		b.Fatalf("%d of a burst of 3 were granted", n)
	}
	b.setLimit(fast)
	b.asks(b.in(time.Second), asks[3])
	if due := b.in(1100 * time.Millisecond); asks[3].RetryAt.After(due) {
		b.Errorf("a step may ask again at %v, want %v at most: the rate was raised to 10 a second after three days were used up", asks[3].RetryAt, due)
	}
	if n := b.asks(b.in(1100*time.Millisecond), asks[3:5]...); n != 1 {
		b.Errorf("%d were granted 100 ms later, want 1", n)
	}
	if n := b.asks(b.in(1200*time.Millisecond), asks[4:6]...); n != 1 {
		b.Errorf("%d were granted another 100 ms later, want 1", n)
	}
	b.setLimit(slow)
	if n := b.asks(b.in(2*time.Second), asks[5:]...); n > 3 {
		b.Errorf("%d were granted after the rate was lowered, want at most its burst", n)
	}
	if n := b.asks(b.in(time.Hour), asks[8:]...); n != 0 {
		b.Errorf("%d were granted an hour later", n)
	}
}

func permitUnbounded(b *bed) {
	one := store.LimitSettings{Concurrent: 1}
	runs := b.runsNamed(4)
	first, second, third, fourth := b.ask(runs[0], one), b.ask(runs[1], one), b.ask(runs[2], one), b.ask(runs[3], one)
	for i, a := range []*store.PermitRequest{first, second, third} {
		b.asks(b.in(time.Duration(i)*time.Millisecond), a)
	}
	if found, err := b.s.DeleteLimit(b.ctx, "l"); err != nil || !found {
		b.Fatalf("DeleteLimit: %v, %v", found, err)
	}
	b.gives(b.in(time.Second), first)
	if p, q := b.permitOf(second.Run), b.permitOf(third.Run); p.Status != store.PermitOffered || q.Status != store.PermitWaiting {
		b.Errorf("the first in line: %+v, the next: %+v; want the first to be woken, since it knows the declared bounds", p, q)
	}
	b.asks(b.in(2*time.Second), fourth)
	b.wantAsk("one that came later", fourth, store.Locked)
	b.asks(b.in(2*time.Second), second, third)
	b.wantAsk("the first in line", second, store.Written)
	b.wantAsk("the next", third, store.Locked)
}

func permitUnusedLines(b *bed) {
	settings := store.LimitSettings{Concurrent: 2, Rate: 1, Period: 3 * time.Second, Burst: 2}
	var asks []*store.PermitRequest
	for i, r := range b.runsNamed(5) {
		a := b.ask(r, settings)
		a.Key = fmt.Sprint("k", i)
		asks = append(asks, a)
	}
	held, spent, later, waits := asks[0], asks[1], asks[3], asks[4]
	waits.Key = held.Key
	held.Units, spent.Units = 2, 2
	if n := b.asks(b.now, held, spent, asks[2]); n != 3 {
		b.Fatalf("%d of 3 were granted", n)
	}
	b.asks(b.now, waits)
	b.gives(b.now, spent, asks[2])
	b.asks(b.in(4*time.Second), later)
	b.gives(b.in(4*time.Second), later)
	sweep := func(what string, at time.Time, want int) {
		b.Helper()
		q, deleted := store.UnusedLimitKeysQuery{UsedBefore: at.Add(-time.Second), Now: at, Limit: 3}, 0
		for {
			got, err := b.s.DeleteUnusedLimitKeys(b.ctx, q)
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
	sweep("while the rates are used up", b.in(2*time.Second), 0)
	sweep("one rate is free again", b.in(4*time.Second), 1) // that of k2; k1 has used up six seconds
	sweep("the other one too", b.in(6500*time.Millisecond), 1)
	sweep("that of the last key too", b.in(8*time.Second), 1)
	sweep("a step executes, and one waits", b.in(50*time.Second), 0)
	b.wantAsk("a step that waits in a line that stays", waits, store.Locked)
	asks[2].Attempt = 2
	b.asks(b.in(8*time.Second), asks[2])
	b.wantAsk("a deleted line", asks[2], store.Written)
}
