package model_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/store/model"
)

// op is one call: how to make it, and what it must return.
type op struct {
	text string
	do   func(ctx context.Context, s store.Store) (any, error)
	// want makes the call to a model and compares the result with what the store returned.
	want func(m *model.Model, got any, contended bool) error
	// unlocked says that it looks before it takes a lock, or takes none: it may go by what
	// its run was before another call.
	unlocked bool
}

// check is one sequence of calls to one database.
type check struct {
	*rapid.T
	ctx    context.Context
	bed    *bed
	models []*model.Model // what the database may be; more than one where a store may choose
	past   []*op          // commits, to be made once more
	ids    uint32
	told   []store.Event // so far
}

func newCheck(t *rapid.T, b *bed) *check {
	checks.Add(1)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	if err := b.empty(ctx); err != nil {
		t.Fatalf("empty the database: %v", err)
	}
	return &check{T: t, ctx: ctx, bed: b, models: []*model.Model{model.New()}}
}

// action returns the function as an action of a state machine of rapid.
func (c *check) action(do func()) func(*rapid.T) {
	return func(t *rapid.T) {
		c.T = t
		actions.Add(1)
		do()
	}
}

// now is one of the models, for choosing what to do next.
func (c *check) now() *model.Model { return c.models[0] }

// handle picks one of the two.
func (c *check) handle() int { return rapid.IntRange(0, 1).Draw(c.T, "handle") }

// diverge ends the check.
func (c *check) diverge(format string, args ...any) {
	c.Fatalf("%s: %s", c.bed.kind, fmt.Sprintf(format, args...))
}

// alone makes one call that nothing else meets.
func (c *check) alone(o *op) {
	actions.Add(1)
	h := c.handle()
	c.Logf("handle %d: %s", h, o.text)
	got, err := o.do(c.ctx, c.bed.handles[h])
	if err != nil {
		c.diverge("%s: %v", o.text, err)
	}
	var became []*model.Model
	var objection error
	for _, m := range c.models {
		some, err := m.Branches(func(m *model.Model) error { return o.want(m, got, false) })
		became = append(became, some...)
		objection = errors.Join(objection, err)
	}
	if len(became) == 0 {
		c.diverge("%s: %v", o.text, objection)
	}
	c.compare(o.text, became, false)
}

// reply is what a call returned.
type reply struct {
	got     any
	err     error
	replays int
}

// together makes two calls at once, one through each handle. What comes of them must be
// what comes of one after the other, one way or the other.
func (c *check) together(one, other *op) {
	actions.Add(2)
	c.Logf("together: %s\n     and: %s", one.text, other.text)
	var replies [2]reply
	ops := [2]*op{one, other}
	gate, open := make(chan struct{}), c.barrier()
	var all sync.WaitGroup
	var stuck atomic.Int32 // those that have come as far as they can, or wait for the barrier to make another try
	for i, o := range ops {
		all.Go(func() {
			<-gate
			r := &replies[i]
			r.got, r.err = o.do(c.ctx, c.bed.handles[i])
			stuck.Add(1)
			for again(r.err) && c.ctx.Err() == nil && r.replays < 20 {
				<-open.gone
				r.replays++ // as the journal would
				r.got, r.err = o.do(c.ctx, c.bed.handles[i])
			}
		})
	}
	close(gate)
	open.when(&stuck)
	all.Wait()
	for i, r := range replies {
		if r.err != nil {
			c.diverge("%s, while %s: %v", ops[i].text, ops[1-i].text, r.err)
		}
	}
	var became []*model.Model
	var objection error
	for _, m := range c.models {
		for first := range 2 {
			some, err := c.serial(m, ops, replies, first)
			became = append(became, some...)
			objection = errors.Join(objection, err)
		}
	}
	if len(became) == 0 {
		c.diverge("%s, while %s, in either order: %v", one.text, other.text, objection)
	}
	c.compare(one.text+"\n and "+other.text, became, c.bed.kind == "postgres")
}

// again reports whether the journal would make the call once more.
func again(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, errLocked) || heldUp(err)
}

// serial is what becomes of one call after the other.
func (c *check) serial(before *model.Model, ops [2]*op, replies [2]reply, first int) ([]*model.Model, error) {
	return before.Branches(func(m *model.Model) error {
		for _, i := range [2]int{first, 1 - first} {
			o, r := ops[i], replies[i]
			if i != first && o.unlocked && c.bed.kind == "postgres" {
				m.FencingState = m.ChooseOrNil(before)
			}
			if r.replays > 0 && m.ChooseOrNil(before) != nil { // a try may have been committed
				_ = o.want(m, r.got, true)
			}
			err := o.want(m, r.got, true)
			m.FencingState = nil
			if err != nil {
				return err
			}
		}
		for _, holds := range m.Conditions {
			if !holds(before) && !holds(m) {
				return errors.New("a run was never as it was told to be")
			}
		}
		m.Conditions = nil
		return nil
	})
}

// compare reads all that is there, through either handle, and keeps those models that
// are the same.
func (c *check) compare(after string, became []*model.Model, swap bool) {
	h := c.handle()
	seen := c.read(c.bed.handles[h], became)
	if text := differ(seen.events[:min(len(c.told), len(seen.events))], c.told); text != "" {
		c.diverge("after %s, events that were told before: [i]%s", after, text)
	}
	var kept []*model.Model
	texts := make(map[string]bool)
	var objection error
	for _, m := range became {
		text := m.String()
		if texts[text] {
			continue
		}
		texts[text] = true
		if err := seen.differs(m, swap); err != nil {
			objection = errors.Join(objection, err)
		} else {
			kept = append(kept, m)
		}
	}
	if len(kept) == 0 {
		c.diverge("read through handle %d after %s: %v", h, after, objection)
	}
	for _, m := range kept {
		m.ReorderEvents(seen.events)
	}
	c.models, c.told = kept, seen.events
}

// sight is all that can be read of a database.
type sight struct {
	list, rows  []*store.Run
	histories   [][]store.Step
	firstInputs [][]byte // hashes
	outlines    []store.RunProgress
	events      []store.Event
}

func (c *check) read(s store.Store, models []*model.Model) *sight {
	var seen sight
	var err error
	fail := func(what string, err error) {
		if err != nil {
			c.diverge("%s: %v", what, err)
		}
	}
	seen.list, err = s.ListRuns(c.ctx, store.Filter{}, uuid.UUID{}, 1000)
	fail("List", err)
	refs := make([]store.RunRef, len(seen.list))
	for i, r := range seen.list {
		refs[i] = store.RunRef{UUIDOrName: r.UUID.String()}
	}
	seen.rows, err = s.GetRuns(c.ctx, refs)
	fail("Get", err)
	for _, r := range seen.list {
		history, err := s.History(c.ctx, r.UUID)
		fail("History", err)
		outline, err := s.RunProgress(c.ctx, r.UUID, base.Add(4*time.Second))
		fail("Outline", err)
		first, err := s.FirstInputHash(c.ctx, r.UUID)
		fail("FirstInputHash", err)
		seen.firstInputs = append(seen.firstInputs, first)
		seen.histories, seen.outlines = append(seen.histories, history), append(seen.outlines, outline)
	}
	least, most := count(models[0]), count(models[0])
	for _, m := range models[1:] {
		least, most = min(least, count(m)), max(most, count(m))
	}
	// An event may be held back for as long as any transaction of the server is open that
	// might still add one before it.
	patience := 5 * time.Second
	if least < most { // nothing says for how many to wait
		patience = 50 * time.Millisecond
	}
	for until := time.Now().Add(patience); ; {
		seen.events, err = s.Events(c.ctx, "", 1000)
		fail("Events", err)
		if len(seen.events) >= most || time.Now().After(until) {
			return &seen
		}
		realtime.Pass(time.Millisecond, "between two readings of the events")
	}
}

func count(m *model.Model) (n int) {
	for _, tx := range m.Events {
		n += len(tx)
	}
	return n
}

// differs objects to what is not as in the model.
func (s *sight) differs(m *model.Model, swap bool) error {
	if text := differ(s.list, m.List(store.Filter{}, uuid.UUID{}, 1000)); text != "" {
		return errors.New("List" + text)
	}
	for i, r := range s.list {
		for _, d := range []struct{ what, text string }{
			{"Get", differ(s.rows[i], m.Get([]store.RunRef{{UUIDOrName: r.UUID.String()}})[0])},
			{"FirstInputHash", differ(string(s.firstInputs[i]), string(m.Runs[r.UUID].FirstInputHash))},
			{"History", differ(s.histories[i], m.History(r.UUID))},
			{"Outline", differ(s.outlines[i], m.RunProgress(r.UUID, base.Add(4*time.Second)))},
		} {
			if d.text != "" {
				return fmt.Errorf("%s of %s (%q)%s", d.what, shorten(r.UUID), r.Name, d.text)
			}
		}
	}
	if !m.MatchesEvents(s.events, swap) {
		return fmt.Errorf("events: got %s, want %s", tell(s.events), tell(m.Events...))
	}
	return nil
}

func tell(groups ...[]store.Event) (text string) {
	for _, events := range groups {
		text += "["
		for _, e := range events {
			text += fmt.Sprintf(" %s:%d@%s", shorten(e.Run), e.Type, offset(e.At))
		}
		text += " ]"
	}
	return text
}
