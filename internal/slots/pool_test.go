package slots

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// openPool returns an open pool, in which no run is told to be unable to lend its slot.
func openPool(t *testing.T, size int) *Pool {
	t.Helper()
	p := NewPool(size, func(waiting int) { t.Errorf("%d runs wait and cannot lend their slots", waiting) })
	p.Open()
	return p
}

// assign reserves n slots or places, and assigns each.
func assign(t *testing.T, p *Pool, n int) []*Slot {
	t.Helper()
	r := p.Reserve(n, 0, n)
	if r.Capacity() != n {
		t.Fatalf("reserved %d of %d", r.Capacity(), n)
	}
	all := make([]*Slot, n)
	for i := range all {
		all[i] = new(Slot)
		r.Assign(all[i])
	}
	if r.Capacity() != 0 {
		t.Fatalf("%d are left of the reservation", r.Capacity())
	}
	return all
}

// given lists which of the slots are given.
func given(all []*Slot) (is []int) {
	for i, s := range all {
		if s.IsGiven() {
			is = append(is, i)
		}
	}
	return is
}

func wantGiven(t *testing.T, when string, all []*Slot, want ...int) {
	t.Helper()
	if got := given(all); !slices.Equal(got, want) {
		t.Errorf("%s, the slots %v are given, want %v", when, got, want)
	}
}

func wantCounts(t *testing.T, when string, p *Pool, want Counts) {
	t.Helper()
	if got := p.Counts(); got != want {
		t.Errorf("%s: %+v, want %+v", when, got, want)
	}
}

// received reports whether the channel is closed, or has an element, which it then takes.
func received(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestAcquireLeavesSlotsFree(t *testing.T) {
	for _, c := range []struct {
		taken, want, leave, prefetch int // of 8 slots
		slots, places                int
	}{
		{want: 3, slots: 3},
		{want: 20, slots: 8},
		{want: 20, leave: 3, slots: 5},
		{want: 2, leave: 3, slots: 2},
		{taken: 5, want: 20, leave: 3, slots: 1},
		{taken: 7, want: 20, leave: 3, slots: 1},
		{taken: 8, want: 20, leave: 3, slots: 0},
		{taken: 8, want: 20, prefetch: 4, slots: 0, places: 4},
		{taken: 6, want: 20, prefetch: 4, slots: 2, places: 4},
		{taken: 6, want: 5, prefetch: 4, slots: 2, places: 3},
		{want: 5, prefetch: 4, slots: 5},
		{want: 0, prefetch: 4},
	} {
		p := openPool(t, 8)
		before := p.Reserve(c.taken, 0, 0)
		r := p.Reserve(c.want, c.leave, c.prefetch)
		if r.UnassignedSlots() != c.slots || r.Capacity() != c.slots+c.places {
			t.Errorf("%+v: %d slots, %d with places", c, r.UnassignedSlots(), r.Capacity())
		}
		wantCounts(t, "reserved", p, Counts{Taken: c.taken + c.slots, PrefetchPlaces: c.places})
		if free := p.FreeSlots(); free != 8-c.taken-c.slots {
			t.Errorf("%+v: %d slots are free", c, free)
		}
		r.Release()
		wantCounts(t, "released", p, Counts{Taken: c.taken})
		r.Release()
		before.Release()
		wantCounts(t, "released twice", p, Counts{})
	}
}

// Prefetched runs get slots in the order of their assignments, and no run gets the slot of another.
func TestQueueGetsSlotsInOrder(t *testing.T) {
	p := openPool(t, 2)
	all := assign(t, p, 5)
	wantGiven(t, "at first", all, 0, 1)
	wantCounts(t, "at first", p, Counts{Taken: 2, PrefetchPlaces: 3, Queued: 3})
	if all[0].WhenGiven() != nil || all[2].WhenGiven() == nil {
		t.Error("only a run that must wait has a channel to wait for")
	}
	all[1].Release()
	wantGiven(t, "after one slot came free", all, 0, 1, 2)
	all[1].Release()
	wantGiven(t, "after a run left twice", all, 0, 1, 2)
	wantCounts(t, "after a run left twice", p, Counts{Taken: 2, PrefetchPlaces: 2, Queued: 2})
	if r := p.Reserve(1, 0, 0); r.Capacity() != 0 {
		t.Error("a slot is free beside the queue")
	}
	all[0].Release()
	all[2].Release()
	wantGiven(t, "after two more slots came free", all, 0, 1, 2, 3, 4)
	all[3].Release()
	all[4].Release()
	wantCounts(t, "at last", p, Counts{})
}

// A slot that comes free between the reservation and the assignment is given at once.
func TestFreeSlotIsGivenToThePrefetchedRun(t *testing.T) {
	p := openPool(t, 1)
	all := assign(t, p, 1)
	place := p.Reserve(1, 0, 1)
	all[0].Release()
	var s Slot
	place.Assign(&s)
	if !s.IsGiven() {
		t.Error("the slot stays free, and the run waits")
	}
	wantCounts(t, "assigned", p, Counts{Taken: 1})
}

// A claim may take more runs than it asked for. Each of them is counted.
func TestAssignMoreRunsThanReserved(t *testing.T) {
	p := openPool(t, 1)
	r := p.Reserve(1, 0, 0)
	all := []*Slot{new(Slot), new(Slot)}
	r.Assign(all[0])
	r.Assign(all[1])
	if r.Capacity() != 0 {
		t.Errorf("%d are left of the reservation", r.Capacity())
	}
	wantCounts(t, "assigned", p, Counts{Taken: 1, PrefetchPlaces: 1, Queued: 1})
	r.Release()
	wantCounts(t, "released", p, Counts{Taken: 1, PrefetchPlaces: 1, Queued: 1})
	all[0].Release()
	wantGiven(t, "after one left", all, 0, 1)
	all[1].Release()
	wantCounts(t, "at last", p, Counts{})
}

// A run that waits no longer gives its turn to the next, and keeps its place until it leaves.
func TestWithdrawnRunGetsNoSlot(t *testing.T) {
	p := openPool(t, 1)
	all := assign(t, p, 4)
	all[1].LeaveQueue()
	all[2].Release() // without Withdraw
	wantCounts(t, "withdrawn", p, Counts{Taken: 1, PrefetchPlaces: 2, Queued: 1})
	all[0].Release()
	wantGiven(t, "after the first left", all, 0, 3)
	wantCounts(t, "after the first left", p, Counts{Taken: 1, PrefetchPlaces: 1})
	all[1].Release()
	all[3].LeaveQueue() // too late: it has the slot
	wantGiven(t, "withdrawn too late", all, 0, 3)
	wantCounts(t, "withdrawn too late", p, Counts{Taken: 1})
	all[3].Release()
	wantCounts(t, "at last", p, Counts{})
}

// The claim loop learns of each slot that comes free.
func TestAFreedSlotIsNotified(t *testing.T) {
	p := openPool(t, 3)
	r := p.Reserve(1, 0, 0)
	all := assign(t, p, 2)
	if received(p.freedChan) {
		t.Error("a taken slot is reported as free")
	}
	r.Release()
	if !received(p.freedChan) {
		t.Error("the end of a reservation was not reported")
	}
	r.Release()
	regain := all[0].Lend()
	if !received(p.freedChan) {
		t.Error("a loan was not reported")
	}
	regain()
	if received(p.freedChan) {
		t.Error("a slot that was taken back is reported as free")
	}
	all[0].Release()
	all[1].Release()
	if !received(p.freedChan) || received(p.freedChan) {
		t.Error("two runs that left are reported by one element")
	}
}

func TestPoolThatIsNotOpenGivesNothing(t *testing.T) {
	p := NewPool(2, nil)
	if r := p.Reserve(1, 0, 1); r.Capacity() != 0 || p.IsOpen() || p.IsClosed() {
		t.Error("it gives slots before it is opened")
	}
	p.Open()
	if !p.IsOpen() || p.IsClosed() {
		t.Error("it is not open")
	}
	all := assign(t, p, 3)
	place := p.Reserve(1, 0, 1)
	p.Close()
	p.Open()
	if r := p.Reserve(1, 0, 1); r.Capacity() != 0 || p.IsOpen() || !p.IsClosed() {
		t.Error("it gives slots after it was closed")
	}
	all[0].Release()
	wantGiven(t, "after the end", all, 0, 1)
	var s Slot
	place.Assign(&s)
	if s.IsGiven() {
		t.Error("a closed pool gave a slot")
	}
}

// A drain waits for slots, lent slots, prefetched runs and reservations, whichever comes last.
func TestDrainWaitsForAll(t *testing.T) {
	names := []string{"a run", "a run that lends its slot", "a prefetched run", "a prefetched run that waits no longer", "reserved slots", "reserved places"}
	for last := range names {
		p := openPool(t, 4)
		two := assign(t, p, 2)
		regain := two[1].Lend()
		slots := p.Reserve(3, 0, 0)
		prefetched := assign(t, p, 2)
		prefetched[1].LeaveQueue()
		places := p.Reserve(1, 0, 1)
		wantCounts(t, "at first", p, Counts{Taken: 4, Lent: 1, PrefetchPlaces: 3, Queued: 1})
		ends := []func(){two[0].Release, two[1].Release, prefetched[0].Release, prefetched[1].Release, slots.Release, places.Release}
		if last == 1 { // it ends with its slot, and not while it lends it
			ends[1] = func() {
				if regain(); received(p.WhenEmpty()) {
					t.Error("the drain is over before the run has left")
				}
				two[1].Release()
			}
		}
		p.Close()
		for i, end := range ends {
			if i != last {
				end()
			}
			if received(p.WhenEmpty()) {
				t.Errorf("the drain did not wait for %s", names[last])
			}
		}
		ends[last]()
		if !received(p.WhenEmpty()) {
			t.Errorf("the drain does not end after %s", names[last])
		}
		p.Close()
		wantCounts(t, "at last", p, Counts{})
	}
	p := openPool(t, 1)
	assign(t, p, 1)[0].Release()
	if received(p.WhenEmpty()) {
		t.Error("an open pool reports the end of a drain")
	}
	p.Close()
	if !received(p.WhenEmpty()) {
		t.Error("the drain of an empty pool does not end")
	}
}

// However many runs begin and leave at once, no slot has two of them.
func TestNoSlotIsGivenTwice(t *testing.T) {
	const size = 3
	p := openPool(t, size)
	var executing, most, lost atomic.Int32
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			for range 40 {
				r := p.Reserve(2, i%2, 2)
				for r.Capacity() > i%3%2 { // some reservations are not used up
					var s Slot
					r.Assign(&s)
					all.Go(func() {
						defer s.Release()
						if turn := s.WhenGiven(); turn != nil {
							ctx, cancel := context.WithCancel(t.Context())
							go cancel()
							select {
							case <-turn:
							case <-ctx.Done():
								s.LeaveQueue()
							}
						}
						if !s.IsGiven() {
							lost.Add(1)
							return
						}
						n := executing.Add(1)
						for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
						}
						runtime.Gosched() // while it has its slot
						executing.Add(-1)
					})
				}
				r.Release()
			}
		})
	}
	all.Wait()
	if n := most.Load(); n > size || n == 0 {
		t.Errorf("%d runs were executed at once in %d slots; %d did not get one", n, size, lost.Load())
	}
	wantCounts(t, "at last", p, Counts{})
	p.Close()
	if !received(p.WhenEmpty()) {
		t.Error("the drain does not end")
	}
}

// A quiet pool reserves nothing, continues to give slots that are assigned, and wakes its receiver when it is quiet no more.
func TestAQuietPoolReservesNothing(t *testing.T) {
	p := openPool(t, 1)
	all := assign(t, p, 2)
	p.SetQuiet(true)
	if r := p.Reserve(5, 0, 5); r.Capacity() != 0 {
		t.Errorf("a quiet pool reserves %d", r.Capacity())
	}
	all[0].Release()
	wantGiven(t, "after the first has left", all, 0, 1)
	all[1].Release()
	if free, prefetch := JointRoom([]*Pool{p}, 5); free != 0 || prefetch != 0 || !p.IsQuiet() {
		t.Errorf("a quiet pool has room for %d and %d", free, prefetch)
	}
	for len(p.freedChan) > 0 {
		<-p.freedChan
	}
	p.SetQuiet(false)
	<-p.freedChan
	if r := p.Reserve(5, 0, 0); r.Capacity() != 1 {
		t.Errorf("a pool that is quiet no more reserves %d", r.Capacity())
	}
}

// Slots beyond the size of a pool are given although all are taken, up to a number. Until fewer runs are executed than the pool has slots, it
// gives no other. They do not make the worker prefetch runs.
func TestSlotsBeyondTheSizeOfThePool(t *testing.T) {
	p := openPool(t, 2)
	held := assign(t, p, 2)
	beyond := p.AcquireBeyond(3)
	if beyond.Capacity() != 3 {
		t.Fatalf("reserved %d slots beyond, want 3", beyond.Capacity())
	}
	if more := p.AcquireBeyond(3); more.Capacity() != 0 {
		t.Errorf("reserved %d more", more.Capacity())
	}
	all := []*Slot{{}, {}}
	for _, s := range all {
		beyond.Assign(s)
	}
	beyond.Release()
	wantGiven(t, "beyond the size", all, 0, 1)
	if !all[0].IsBeyond() || held[0].IsBeyond() {
		t.Error("IsBeyond is wrong")
	}
	held[0].Release()
	if r := p.Reserve(1, 0, 0); r.Capacity() != 0 {
		t.Error("a slot is free while as many runs are executed as there are slots")
	}
	for _, s := range all {
		s.Release()
	}
	wantCounts(t, "in the end", p, Counts{Taken: 1})
	if _, prefetch := JointRoom([]*Pool{p}, 100); prefetch > 1 {
		t.Errorf("%d runs are to be prefetched", prefetch)
	}
	p.SetQuiet(true)
	if r := p.AcquireBeyond(3); r.Capacity() != 0 {
		t.Error("a quiet pool gives slots")
	}
}
