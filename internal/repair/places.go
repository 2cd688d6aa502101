package repair

import (
	"strings"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// movePlaces sets the places of calls for the new generation.
func (p *plan) movePlaces(renewal *record.Renewal) {
	var dropped, changed, kept []*store.Step
	for i := range p.History {
		row := &p.History[i]
		_, isOpen := p.reopenedCalls[row.Name]
		_, hasValue := p.callsWithValue[row.Name]
		switch {
		case isInternalRecord(row):
			continue
		case isOpen || hasValue:
			changed = append(changed, row)
		case p.dropped[row.Name]:
			dropped = append(dropped, row)
			continue
		}
		kept = append(kept, row)
	}
	renewal.MovePlaces(dropped, changed, kept, func(row *store.Step) bool { return p.mapOfItem(row) != nil })
}

// mapOfItem returns the Map to which the call belongs as an item, or nil if the call is no item of a Map.
func (p *plan) mapOfItem(row *store.Step) *store.Step {
	if at := strings.LastIndex(row.Name, naming.Separator); at >= 0 {
		if scope := p.historyByName[row.Name[:at]]; scope != nil && scope.Kind == store.KindMap {
			return scope
		}
	}
	return nil
}
