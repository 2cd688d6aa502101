package slots

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// A run that waits lends its slot to the next, and continues at once when its wait ends. Nobody else begins
// until fewer runs are executed than there are slots.
func TestLentSlotReturns(t *testing.T) {
	p := openPool(t, 1)
	all := assign(t, p, 3)
	regain := all[0].Lend()
	wantGiven(t, "while one waits", all, 0, 1)
	wantCounts(t, "while one waits", p, Counts{Taken: 1, Lent: 1, PrefetchPlaces: 1, Queued: 1})
	regain()
	wantCounts(t, "after the wait", p, Counts{Taken: 2, PrefetchPlaces: 1, Queued: 1})
	if free := p.FreeSlots(); free != 0 {
		t.Errorf("%d slots are free", free)
	}
	all[0].Release()
	wantGiven(t, "while one slot is taken", all, 0, 1)
	if r := p.Reserve(1, 0, 0); r.Capacity() != 0 {
		t.Error("a slot is free that a run has")
	}
	all[1].Release()
	wantGiven(t, "after both have left", all, 0, 1, 2)
	all[2].Release()
	wantCounts(t, "at last", p, Counts{})
}

// Waits of one run overlap: it lends its one slot once, until all of them have ended.
func TestOverlappingWaitsLendOneSlot(t *testing.T) {
	p := openPool(t, 3)
	s := assign(t, p, 1)[0]
	first, second := s.Lend(), s.Lend()
	wantCounts(t, "in two waits", p, Counts{Lent: 1})
	first()
	wantCounts(t, "in one wait", p, Counts{Lent: 1})
	third := s.Lend()
	second()
	wantCounts(t, "in another wait", p, Counts{Lent: 1})
	third()
	wantCounts(t, "after the waits", p, Counts{Taken: 1})
	s.Lend()()
	wantCounts(t, "after a further wait", p, Counts{Taken: 1})
	s.Release()
	s.Lend()
	wantCounts(t, "at last", p, Counts{})
}

// A run that leaves while it waits returns its slot, and its waits then change nothing any more.
func TestRunLeavesWhileItWaits(t *testing.T) {
	p := openPool(t, 1)
	all := assign(t, p, 2)
	regain := all[0].Lend()
	all[0].Release()
	wantCounts(t, "after it left", p, Counts{Taken: 1})
	again := all[0].Lend()
	wantCounts(t, "after it waits again", p, Counts{Taken: 1})
	again()
	regain()
	wantCounts(t, "after its waits", p, Counts{Taken: 1})
	if free := p.FreeSlots(); free != 0 {
		t.Errorf("%d slots are free", free)
	}
	all[1].Release()
	wantCounts(t, "at last", p, Counts{})
}

// A run that has no slot has none to lend.
func TestRunWithoutSlotLendsNone(t *testing.T) {
	p := openPool(t, 1)
	all := assign(t, p, 2)
	regain := all[1].Lend()
	wantCounts(t, "while it waits", p, Counts{Taken: 1, PrefetchPlaces: 1, Queued: 1})
	all[0].Release()
	regain()
	wantCounts(t, "after it got a slot", p, Counts{Taken: 1})
}

// At most sixteen times the slots are lent. When as many runs as there are slots wait beyond that, the pool
// tells it once, without a lock.
func TestLoansAreLimited(t *testing.T) {
	const size = 2
	var p *Pool
	var told []int
	p = NewPool(size, func(waiting int) {
		p.Counts() // would wait forever if the pool were locked
		told = append(told, waiting)
	})
	p.Open()
	var all []*Slot
	var regains []func()
	for range maxLoansPerSlot * size {
		s := assign(t, p, 1)[0]
		all, regains = append(all, s), append(regains, s.Lend())
	}
	wantCounts(t, "all are lent", p, Counts{Lent: maxLoansPerSlot * size})
	for i, s := range assign(t, p, size) {
		all, regains = append(all, s), append(regains, s.Lend())
		wantCounts(t, "a loan was refused", p, Counts{Taken: size, Lent: maxLoansPerSlot * size})
		if i < size-1 && told != nil {
			t.Errorf("told of %v too early", told)
		}
	}
	if len(told) != 1 || told[0] != (maxLoansPerSlot+1)*size {
		t.Errorf("told of %v waiting runs", told)
	}
	regains[len(all)-1]() // its slot was not lent
	wantCounts(t, "one goes on", p, Counts{Taken: size, Lent: maxLoansPerSlot * size})
	regains[0]()
	wantCounts(t, "another goes on", p, Counts{Taken: size + 1, Lent: maxLoansPerSlot*size - 1})
	regains[len(all)-1] = all[len(all)-1].Lend()
	wantCounts(t, "a loan is free", p, Counts{Taken: size, Lent: maxLoansPerSlot * size})
	regains[0] = all[0].Lend() // one loan was refused before, and now this
	if len(told) != 2 || told[1] != (maxLoansPerSlot+1)*size {
		t.Errorf("told of %v waiting runs", told)
	}
	for i, s := range all {
		if i%2 == 0 {
			regains[i]()
		}
		s.Release()
	}
	wantCounts(t, "at last", p, Counts{})
	for range maxLoansPerSlot * size { // no loan is counted any more, refused or not
		assign(t, p, 1)[0].Lend()
	}
	for _, s := range assign(t, p, size)[:size-1] {
		s.Lend()
	}
	if len(told) != 2 {
		t.Errorf("told of %v waiting runs: the refused loans were not forgotten", told)
	}
}

// Runs that lend their slots while others leave, and that leave while they lend, return every slot.
func TestLoansReturnEverySlot(t *testing.T) {
	p := openPool(t, 2)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 200 {
				r := p.Reserve(1, 0, 1)
				if r.Capacity() == 0 {
					continue
				}
				var s Slot
				r.Assign(&s)
				if turn := s.WhenGiven(); turn != nil {
					<-turn
				}
				var waits sync.WaitGroup
				for range 2 {
					waits.Go(func() { s.Lend()() })
				}
				if i%2 == 0 {
					waits.Wait()
				}
				s.Release()
				waits.Wait()
			}
		})
	}
	all.Wait()
	wantCounts(t, "at last", p, Counts{})
}

// member is a run of the random test: what it has done, and not what the pool made of it.
type member struct {
	Slot
	waits []func()
	had   bool // the slot was given when the test last looked
	gone  bool // it waits for a slot no longer
}

// Random operations: after each of them the pool counts what the runs have, no slot is free while a run
// waits, and a run begins only in its turn and only in a free slot.
func TestPoolKeepsCount(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		size := 1 + random.IntN(4)
		p := NewPool(size, func(int) {})
		p.Open()
		var runs []*member
		var held []*Reservation
		executing := 0 // before the operation
		closed := false
		for op := range 150 {
			switch do := random.IntN(12); {
			case do < 3:
				r := p.Reserve(random.IntN(4), random.IntN(2), random.IntN(3))
				held = append(held, &r)
			case do < 6 && len(held) > 0:
				if r := held[random.IntN(len(held))]; r.Capacity() > 0 {
					m := new(member)
					r.Assign(&m.Slot)
					runs = append(runs, m)
				}
			case do < 7 && len(held) > 0:
				held[random.IntN(len(held))].Release()
			case len(runs) == 0:
			case do < 8:
				m := runs[random.IntN(len(runs))]
				if m.had {
					m.waits = append(m.waits, m.Lend())
				}
			case do < 9:
				if m := runs[random.IntN(len(runs))]; len(m.waits) > 0 {
					if m.waits[0](); len(m.waits) == 1 {
						executing++ // it continues at once, and does not begin
					}
					m.waits = m.waits[1:]
				}
			case do < 10:
				m := runs[random.IntN(len(runs))]
				m.LeaveQueue()
				m.gone = !m.had
			case do < 11:
				i := random.IntN(len(runs))
				runs[i].Release()
				runs = append(runs[:i:i], runs[i+1:]...)
			case op > 100:
				p.Close()
				closed = true
			}
			var want Counts
			for _, r := range held {
				want.Taken += r.UnassignedSlots()
				want.PrefetchPlaces += r.Capacity() - r.UnassignedSlots()
			}
			passed := false // an earlier run of the queue still waits
			for _, m := range runs {
				if m.IsGiven() && !m.had && m.WhenGiven() != nil && (passed || m.gone || closed) {
					t.Fatalf("seed %d, operation %d: a run has got a slot out of turn", seed, op)
				}
				m.had = m.IsGiven()
				switch {
				case m.had && len(m.waits) > 0:
					want.Lent++
				case m.had:
					want.Taken++
				case m.gone:
					want.PrefetchPlaces++
				default:
					want.PrefetchPlaces++
					want.Queued++
					passed = true
				}
			}
			if got := p.Counts(); got != want {
				t.Fatalf("seed %d, operation %d: %+v, want %+v", seed, op, got, want)
			}
			if want.Taken > max(size, executing) {
				t.Fatalf("seed %d, operation %d: %d are executed in %d slots, %d before", seed, op, want.Taken, size, executing)
			}
			if !closed && want.Queued > 0 && want.Taken < size {
				t.Fatalf("seed %d, operation %d: %d wait, and %d of %d slots are taken", seed, op, want.Queued, want.Taken, size)
			}
			if got := received(p.WhenEmpty()); got != (closed && want == Counts{}) {
				t.Fatalf("seed %d, operation %d: the drain is over: %v, with %+v", seed, op, got, want)
			}
			executing = want.Taken
		}
	}
}

// A slot that moves to another run stays taken, once, also if it was lent.
func TestSlotMovesToAnotherRun(t *testing.T) {
	p := openPool(t, 1)
	s := assign(t, p, 1)[0]
	s.Lend()
	var next, last Slot
	s.MoveTo(&next)
	s.Release()
	wantCounts(t, "after the move", p, Counts{Taken: 1})
	if !next.IsGiven() {
		t.Error("the next run has no slot")
	}
	next.Release()
	wantCounts(t, "after the next run", p, Counts{})
	next.MoveTo(&last)
	wantCounts(t, "moved by a run that has left", p, Counts{Taken: 1})
	last.Release()
	wantCounts(t, "at last", p, Counts{})
}
