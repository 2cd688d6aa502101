package graph

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
)

// HistoryRow is one row of the history of a run, as users see its status.
type HistoryRow struct {
	Name      string // with its scopes, not as displayed
	Status    string // started, backoff, completed, failed or cancelled
	Output    []byte
	Attempts  int
	StartedAt time.Time
	EndedAt   time.Time // zero while it has no outcome
}

// NodeView holds what the rows of a run say about a node.
type NodeView struct {
	State     State
	Attempts  int // the attempts of all its calls
	StartedAt time.Time
	EndedAt   time.Time
	Because   string // if the node is skipped or fails the run: the node because of which it does
	Condition bool   // it is skipped because its condition on the value of Because does not hold
	Call      string // the name of the row that executes it, with its scope; for a list, that of the first failed item, if any

	// Of a list: its items by their status.
	Total, Completed, Failed, Running int
}

// NodeViews derives the states of all nodes, in the order of declaration. The function ended reports whether a choice has ended a node.
// The argument over says that the run has ended.
func (s *Shape) NodeViews(rows []HistoryRow, ended func(node string) bool, over bool) []NodeView {
	v := viewBuilder{shape: s, rowsByName: make(map[string]*HistoryRow, len(rows)), rowsByScope: make(map[string][]*HistoryRow), culprits: make(map[string]string, len(s.Nodes)), views: make([]NodeView, len(s.Nodes))}
	for i := range rows {
		name := rows[i].Name
		v.rowsByName[name] = &rows[i]
		if at := strings.LastIndex(name, naming.Separator); at >= 0 {
			v.rowsByScope[name[:at]] = append(v.rowsByScope[name[:at]], &rows[i])
		}
	}
	for i := range s.Nodes {
		v.culprits[FailChoiceName(s.Nodes[i].Name)] = s.Nodes[i].Name
	}
	for i := range s.Nodes {
		view := &v.views[i]
		v.fromRows(&s.Nodes[i], view)
		isFinal, isEnded := view.State.IsFinal(), ended(s.Nodes[i].Name)
		if view.State == "" || view.State == Ready { // after its delay, a list without items has no row either
			view.State = v.stateWithoutRows(&s.Nodes[i])
		}
		switch {
		case !isEnded:
		case !isFinal && view.State != Completed: // a node whose list has no items has completed
			view.State = Cancelled
		case view.State == Failed && view.Failed > 0 && view.Completed+view.Failed < view.Total: // the choice has refused the other items
			view.State, view.EndedAt = Cancelled, time.Time{}
		}
		if over && !view.State.IsFinal() {
			view.State = Cancelled
		}
		if view.Because == "" && view.Call == "" && (view.State == Skipped || view.State == Failed) {
			view.Because = v.unmetReasonName(&s.Nodes[i])
		}
	}
	return v.views
}

type viewBuilder struct {
	shape       *Shape
	rowsByName  map[string]*HistoryRow
	rowsByScope map[string][]*HistoryRow // by the scope that they are in
	culprits    map[string]string        // the nodes that fail the run, by the names of the choices that record it
	views       []NodeView
}

// fromRows sets what the node's own rows say. Without rows, the state stays empty.
func (v *viewBuilder) fromRows(n *Node, view *NodeView) {
	scope := n.Name + naming.Separator
	if r := v.rowsByName[scope+CallDelay]; r != nil {
		view.StartedAt = r.StartedAt
		if view.State = callState(r); view.State == Running {
			view.State = Delayed
		} else if view.State == Completed {
			view.State = Ready
		}
	}
	if r := v.rowsByName[scope+CallSkip]; r != nil {
		view.State, view.EndedAt, view.Condition = Skipped, r.EndedAt, true
		if json.Unmarshal(r.Output, &view.Because) != nil {
			view.Because = "" // the output cannot be read here
		}
	}
	for _, r := range v.rowsByScope[n.Name] {
		if culprit, ok := v.culprits[r.Name[len(scope):]]; ok {
			view.State, view.EndedAt, view.Because = Failed, r.EndedAt, culprit
		}
	}
	call := scope + CallName(n.Kind)
	if n.Over != "" {
		v.fromItems(n, call, view)
	} else if r := v.rowsByName[call]; r != nil {
		view.recordCall(r)
		view.State, view.Call = callState(r), call
		if view.State.IsFinal() {
			view.EndedAt = r.EndedAt
		}
	}
	if r := v.rowsByName[scope+CallFailure]; r != nil && callState(r) == Failed { // recorded after all other calls of the node
		view.recordCall(r)
		view.State, view.Call, view.EndedAt = Failed, r.Name, r.EndedAt
	}
}

// fromItems sets what the items' rows say.
func (v *viewBuilder) fromItems(n *Node, call string, view *NodeView) {
	var last time.Time
	isOpenAtEnd := false // an item was open when the run ended
	for _, r := range v.rowsByScope[call] {
		view.recordCall(r)
		switch callState(r) {
		case Completed:
			view.Completed++
		case Failed:
			view.Failed++
			if view.Call == "" {
				view.Call = r.Name
			}
		case Running:
			view.Running++
		case Cancelled:
			isOpenAtEnd = true
		}
		if r.EndedAt.After(last) {
			last = r.EndedAt
		}
	}
	// An override may have made the list shorter, and have kept the results of its former items.
	view.Total = max(v.itemCount(n.Over), view.Completed+view.Failed+view.Running)
	switch r := v.rowsByName[call]; {
	case view.Running > 0:
		view.State = Running
	case isOpenAtEnd:
		view.State, last = Cancelled, time.Time{}
	case view.Failed > 0:
		view.State = Failed
	case r != nil || len(v.rowsByScope[call]) > 0:
		if view.State = Running; view.Completed >= view.Total {
			view.State = Completed
		} else if r != nil && r.Status == "cancelled" {
			view.State = Cancelled
		}
	}
	if view.State.IsFinal() && !last.IsZero() {
		view.EndedAt = last
	}
}

// recordCall counts the attempts and the time of a call.
func (view *NodeView) recordCall(r *HistoryRow) {
	view.Attempts += r.Attempts
	if view.StartedAt.IsZero() || r.StartedAt.Before(view.StartedAt) {
		view.StartedAt = r.StartedAt
	}
}

// itemCount returns the number of items of the value of a node; zero if it has none. A node that is executed for each item of a list has as many
// items as the list, also before it has completed.
func (v *viewBuilder) itemCount(node string) int {
	n := &v.shape.Nodes[v.shape.Index(node)]
	if n.Over != "" {
		return v.views[v.shape.Index(node)].Total
	}
	if r := v.rowsByName[n.Name+naming.Separator+CallName(n.Kind)]; r != nil && callState(r) == Completed {
		return ItemCount(r.Output)
	}
	return 0
}

// stateWithoutRows returns the state of a node without rows.
func (v *viewBuilder) stateWithoutRows(n *Node) State {
	verdict, _ := n.NextVerdict(v.state, func(choice int) bool {
		r := v.rowsByName[n.Name+naming.Separator+ChoiceName(choice)]
		return r != nil && callState(r) == Completed
	})
	switch {
	case verdict == VerdictBegin && n.Over != "" && v.itemCount(n.Over) == 0 && v.hasPassed(n):
		return Completed
	case verdict == VerdictBegin:
		return Ready
	case verdict == VerdictSkip:
		return Skipped
	case verdict == VerdictFailRun:
		return Failed
	}
	return Waiting
}

// hasPassed reports whether the rows record that a node whose list has no items has begun, and that its delay is over.
func (v *viewBuilder) hasPassed(n *Node) bool {
	isRecorded := func(call string) bool {
		r := v.rowsByName[n.Name+naming.Separator+call]
		return r != nil && callState(r) == Completed
	}
	return isRecorded(CallHeld) && (!n.Delayed || isRecorded(CallDelay))
}

// unmetReasonName returns the name of the main node because of which a need of the node is not met, or an empty text.
func (v *viewBuilder) unmetReasonName(n *Node) string {
	at := v.shape.MainUnmetReason(n, func(i int) NodeOutcome {
		o := NodeOutcome{State: v.views[i].State}
		if v.views[i].Condition {
			o.Condition = v.views[i].Because
		}
		return o
	})
	if at < 0 {
		return ""
	}
	return v.shape.Nodes[at].Name
}

func (v *viewBuilder) state(node string) State { return v.views[v.shape.Index(node)].State }

// callState returns the state of a node that makes only the call of the row.
func callState(r *HistoryRow) State {
	switch r.Status {
	case "completed":
		return Completed
	case "failed":
		return Failed
	case "cancelled":
		return Cancelled
	}
	return Running
}

// ItemCount returns the number of items of an encoded list. A list of bytes is a JSON string with their base64 encoding, every other list a JSON
// array. The result is zero if b is no encoded list.
func ItemCount(b []byte) int {
	d := jsontext.NewDecoder(bytes.NewReader(b))
	t, err := d.ReadToken()
	switch {
	case err != nil:
		return 0
	case t.Kind() == '"':
		return len(strings.TrimRight(t.String(), "=")) * 3 / 4
	case t.Kind() != '[':
		return 0
	}
	n := 0
	for d.PeekKind() != ']' && d.PeekKind() != 0 {
		if d.SkipValue() != nil {
			return n
		}
		n++
	}
	return n
}
