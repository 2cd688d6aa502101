package repair

import (
	"maps"
	"slices"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// dropCheckpoint drops a checkpoint, unless an attempt of an at-most-once step has no outcome yet.
func (p *plan) dropCheckpoint(row *store.Step) {
	if record.IsUnknownOnce(row) {
		return
	}
	p.dropped[row.Name] = true
	delete(p.droppedBefore, row.Name)
	if row.Status == store.StepCompleted && hasIdempotencyKey(row.Kind) || hasEscalated(row) {
		p.renewedKeys[row.Name] = true
	}
}

// hasEscalated reports whether the call is a receive whose escalation is recorded; the receive then continued to wait as its next
// attempt. If the run makes the receive again, it escalates again, so the escalation needs another key.
func hasEscalated(row *store.Step) bool { return row.Kind == store.KindReceive && row.Attempt > 1 }

// hasIdempotencyKey reports whether calls of the kind have idempotency keys.
func hasIdempotencyKey(k store.StepKind) bool {
	return k == store.KindStep || k == store.KindTx || k == store.KindCompensation || k == store.KindSendSignal || k == store.KindStartRoot
}

// noteNameOfKey notes the name of a dropped call that keeps its idempotency key or the token of its callback. For an item of a Map it notes the
// name of the Map, because only Maps are renamed, not their items.
func (p *plan) noteNameOfKey(renewal *record.Renewal, row *store.Step) {
	keepsKey := hasIdempotencyKey(row.Kind) && row.Kind != store.KindCompensation && !p.renewedKeys[row.Name]
	if !keepsKey && row.Kind != store.KindReceive {
		return
	}
	name := row.Name
	if scope := p.mapOfItem(row); scope != nil {
		name = scope.Name
	}
	name = naming.Display(name)
	if at, found := slices.BinarySearch(renewal.SameKey, name); !found {
		renewal.SameKey = slices.Insert(renewal.SameKey, at, name)
	}
}

// renewKeys gives new idempotency keys to the calls in renewedKeys and in undoneNames. It returns the names of the calls in
// renewedKeys, as people see them.
func (p *plan) renewKeys(renewal *record.Renewal) (renewed []string) {
	for _, name := range slices.Sorted(maps.Keys(p.renewedKeys)) {
		renewed = append(renewed, naming.Display(name))
	}
	if renewal.Since == nil && len(renewed)+len(p.undoneNames) > 0 {
		renewal.Since = make(map[string]int32, len(renewed))
	}
	for _, name := range renewed {
		renewal.Since[name] = p.Generation + 1
	}
	for _, name := range p.undoneNames {
		renewal.Since[name], renewal.Since[name+"/"] = p.Generation+1, p.Generation+1
	}
	return renewed
}
