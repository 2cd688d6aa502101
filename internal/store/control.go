package store

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Order is one pause, resume or cancel, of one or more runs and what is beneath them.
type Order struct {
	Verb   Verb
	Scope  Scope // of a cancel
	Runs   []uuid.UUID
	Now    time.Time
	Reason string
	Actor  string
	Error  []byte // of runs that a cancel ends at once
	Freeze bool   // a resume moves timers and deadlines by the time that the run was paused

	// Answers, one for each of Runs, are filled in by Plan.
	Answers []OrderAnswer
}

// Verb is what is ordered.
type Verb uint8

// The verbs.
const (
	VerbPause  Verb = 1
	VerbResume Verb = 2
	VerbCancel Verb = 3
)

// Scope is how far a cancel reaches.
type Scope uint8

// The scopes. The zero value is the whole tree.
const (
	WholeTree    Scope = 0
	NotStarted   Scope = 1 // of the tree, what has never been executed
	RunItself    Scope = 2
	ChildrenOnly Scope = 3 // what is beneath, but for detached children, at each level: their parent ends
)

// OrderAnswer says what an order did for one of its runs.
type OrderAnswer struct {
	Found   bool
	Status  Status // of the run itself, before the order
	Control Bits   // before the order
	Changed int    // runs, itself included, that are now as ordered
	Asked   int    // runs that are executed somewhere, or will be, to end or leave as ordered
}

// Node is one run of a tree, as Plan sees it.
type Node struct {
	ID       uuid.UUID
	Parent   uuid.NullUUID
	Status   Status
	Epoch    Epoch
	Control  Bits
	Owner    uuid.NullUUID
	Detached bool
	Begun    bool // it has a checkpoint of a step, a transaction, a child or a compensation: something may have to be undone
}

// WakeMode is what becomes of wake_at.
type WakeMode int16

// The modes.
const (
	WakeKeep  WakeMode = 0
	WakeNever WakeMode = 1
	WakeNow   WakeMode = 2
)

// Note is which of a run's columns for people change. The numbers are used in SQL.
type Note int16

// The notes.
const (
	NoteNone   Note = 0
	NotePause  Note = 1 // reason, paused_by, paused_at are set
	NoteResume Note = 2 // those become NULL, and crashes 0
	NoteCancel Note = 3 // cancel_reason, cancelled_by, cancelled_at are set, and those of a pause become NULL
)

// Change is one guarded update that an order leads to: of the run with Was's ID, Status,
// Epoch and Control, which is locked.
type Change struct {
	Was     Node
	Status  Status
	Control Bits
	Wake    WakeMode
	Note    Note
}

// Ends reports whether the run is ended by this change: it gets EndedAt and the order's
// Error, and loses its owner.
func (c *Change) Ends() bool { return c.Status.Terminal() }

// Plan says what the order changes. The nodes are all that is at and beneath Order.Runs,
// and all that is above those runs, each once, as they are now and stay until the
// changes are made. It answers the changes in the order of (shard, id), and whose waits for a child may
// be over: parents to wake, as the end of a child does.
//
// It is pure, and both stores use it, so that a cascade means the same in both.
func (o *Order) Plan(nodes []Node) (changes []Change, wake []uuid.UUID) {
	p := planner{order: o, was: make(map[uuid.UUID]*Node, len(nodes)), now: make(map[uuid.UUID]*planned, len(nodes)), below: make(map[uuid.UUID][]*planned)}
	for i := range nodes {
		n := &nodes[i]
		p.was[n.ID] = n
		p.now[n.ID] = &planned{Node: *n}
	}
	for i := range nodes {
		if n := &nodes[i]; n.Parent.Valid {
			p.below[n.Parent.UUID] = append(p.below[n.Parent.UUID], p.now[n.ID])
		}
	}
	o.Answers = make([]OrderAnswer, len(o.Runs))
	for i, id := range o.Runs {
		n := p.now[id]
		if n == nil {
			continue
		}
		a := &o.Answers[i]
		a.Found, a.Status, a.Control = true, p.was[id].Status, p.was[id].Control
		p.answer = a
		switch o.Verb {
		case VerbPause:
			p.pause(n, PausedItself)
		case VerbResume:
			p.resume(n, PausedItself)
		case VerbCancel:
			p.cancel(n)
		}
	}
	return p.result()
}

type planned struct {
	Node
	wake WakeMode
	note Note
}

type planner struct {
	order  *Order
	answer *OrderAnswer
	was    map[uuid.UUID]*Node
	now    map[uuid.UUID]*planned
	below  map[uuid.UUID][]*planned
}

// pause sets the bit on n, and the inherited one on everything beneath. A run that is to
// be cancelled is left to it, and so is what is beneath it.
func (p *planner) pause(n *planned, bit Bits) {
	if !n.Status.Terminal() {
		if n.Control&CancelAsked != 0 {
			return
		}
		if n.Control&bit == 0 {
			if bit == PausedItself || n.Control&PausedItself == 0 {
				n.note = NotePause // its own reason goes before an ancestor's
			}
			if n.Status == Running {
				p.answer.Asked++
			} else {
				n.Status, n.wake = Paused, WakeNever
				p.answer.Changed++
			}
			n.Control |= bit
		}
	} else if bit == PausedItself {
		return // an ended root of the order: the caller is told, nothing is done
	}
	for _, child := range p.below[n.ID] {
		p.pause(child, PausedAbove)
	}
}

// resume clears the bit on n, and, where n is then not paused any more, the inherited one
// beneath it. An ended run, or one that is to be cancelled, is no obstacle on the way down: what
// was paused with a run goes on with its resume, also if the run has come to its end meanwhile.
// A run that inherited its pause from one that is gone since is resumed by itself.
func (p *planner) resume(n *planned, bit Bits) {
	if bit == PausedItself && !p.pausedAbove(n) {
		bit |= PausedAbove
	}
	switch {
	case n.Status.Terminal():
		if bit == PausedItself { // a run above keeps what is beneath it paused
			return
		}
	case n.Control&CancelAsked != 0 && bit == PausedAbove:
	default:
		if n.Control&bit == 0 {
			return
		}
		n.Control &^= bit
		if n.Control&PausedAnyhow != 0 {
			return
		}
		n.note = NoteResume
		if n.Status == Paused {
			n.Status, n.wake = Pending, WakeNow
		}
		p.answer.Changed++
	}
	for _, child := range p.below[n.ID] {
		p.resume(child, PausedAbove)
	}
}

// pausedAbove reports whether some run above keeps it paused.
func (p *planner) pausedAbove(n *planned) bool {
	for n.Parent.Valid {
		if n = p.now[n.Parent.UUID]; n == nil {
			return false
		}
		if !n.Status.Terminal() && n.Control&PausedItself != 0 {
			return true
		}
	}
	return false
}

func (p *planner) cancel(n *planned) {
	switch p.order.Scope {
	case RunItself:
		alone := n.Control&PausedAnyhow == PausedItself
		p.cancelOne(n)
		if alone { // what is beneath was paused with it, and with nothing else
			for _, child := range p.below[n.ID] {
				p.resume(child, PausedAbove)
			}
		}
	case NotStarted:
		if n.Epoch.Count == 0 {
			p.cancelOne(n)
		}
		p.beneath(n, func(child *planned) bool { return true })
	case ChildrenOnly:
		p.beneath(n, func(child *planned) bool { return !child.Detached })
	default:
		p.cancelOne(n)
		p.beneath(n, func(child *planned) bool { return true })
	}
}

// beneath cancels what is chosen beneath n; beneath what is not chosen, nothing.
func (p *planner) beneath(n *planned, chosen func(*planned) bool) {
	for _, child := range p.below[n.ID] {
		if !chosen(child) {
			continue
		}
		if p.order.Scope != NotStarted || child.Epoch.Count == 0 {
			p.cancelOne(child)
		}
		p.beneath(child, chosen)
	}
}

// cancelOne ends a run that has done nothing, and asks any other to end: its worker, or
// the next one, undoes what it did. The first reason is kept.
func (p *planner) cancelOne(n *planned) {
	if n.Status.Terminal() {
		return
	}
	if n.Control&CancelAsked != 0 {
		p.answer.Asked++
		return
	}
	n.Control = CancelAsked
	n.note = NoteCancel
	switch {
	case n.Status == Running:
		p.answer.Asked++
	case n.Begun:
		n.Status, n.wake = Pending, WakeNow
		p.answer.Asked++
	default:
		n.Status, n.wake = Cancelled, WakeNever
		p.answer.Changed++
	}
}

func (p *planner) result() (changes []Change, wake []uuid.UUID) {
	woken := make(map[uuid.UUID]bool)
	for id, n := range p.now {
		was := p.was[id]
		if was.Status == n.Status && was.Control == n.Control {
			continue
		}
		changes = append(changes, Change{Was: *was, Status: n.Status, Control: n.Control, Wake: n.wake, Note: n.note})
		if n.Status.Terminal() && n.Parent.Valid {
			if parent := p.now[n.Parent.UUID]; parent == nil || !parent.Status.Terminal() {
				woken[n.Parent.UUID] = true
			}
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return compareIDs(a.Was.ID, b.Was.ID) })
	for id := range woken {
		wake = append(wake, id)
	}
	slices.SortFunc(wake, compareIDs)
	return changes, wake
}

func compareIDs(a, b uuid.UUID) int {
	return cmp.Or(cmp.Compare(ShardOf(a), ShardOf(b)), bytes.Compare(a[:], b[:]))
}
