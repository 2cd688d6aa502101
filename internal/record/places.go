package record

import (
	"slices"
	"strings"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// A call that a repair drops is executed again after the calls that the repair keeps, and has a higher Seq than these. In the code it
// stands before them. So Renewal.Places has the places of such calls: the Seqs with which they began first, by their names as people see
// them. For the items of a Map it has one place, the latest, under the name of their scope, because no item follows from another.
//
// The new outcome of a call may lead the code to calls that the run has not made before. Where these stand among the kept calls is not known.
// So Renewal.KeptUpTo has, for each repair that kept calls after one that it changed, the highest Seq of the kept calls, in
// ascending order. Only the places of calls between the same two repairs can be compared.

// Place returns where the call stands in the code: the Seq with which the call began first in the run.
func (r *Renewal) Place(row *store.Step) int32 {
	if len(r.Places) == 0 {
		return row.Seq
	}
	if place, found := r.Places[naming.Display(row.Name)]; found {
		return place
	}
	if place, found := r.Places[naming.Display(scopeOf(row.Name))]; found {
		return min(place, row.Seq)
	}
	return row.Seq
}

// RepairsBefore returns how many of the repairs in KeptUpTo precede the place.
func (r *Renewal) RepairsBefore(place int32) int {
	n, _ := slices.BinarySearch(r.KeptUpTo, place)
	return n
}

// MovePlaces sets Places and KeptUpTo for a new generation. Of the history before it, the repair drops the calls in dropped and keeps those in kept. It
// changes the outcomes of the calls in changed, which are among the kept. The function isItem reports whether a call is an item of a Map.
func (r *Renewal) MovePlaces(dropped, changed, kept []*store.Step, isItem func(*store.Step) bool) {
	var lastPlace, lastSeq int32
	for _, row := range kept {
		lastPlace, lastSeq = max(lastPlace, r.Place(row)), max(lastSeq, row.Seq)
	}
	places := make(map[string]int32)
	for name, place := range r.Places {
		if place < lastPlace {
			places[name] = place
		}
	}
	keepsLater := false
	for _, row := range dropped {
		place, name := r.Place(row), row.Name
		if place >= lastPlace { // what is executed again comes last, as at first
			continue
		}
		keepsLater = true
		if isItem(row) {
			name = scopeOf(name)
			place = max(place, places[naming.Display(name)])
		}
		places[naming.Display(name)] = place
	}
	for _, row := range changed {
		keepsLater = keepsLater || r.Place(row) < lastPlace
	}
	upTo := slices.DeleteFunc(slices.Clone(r.KeptUpTo), func(seq int32) bool { return seq >= lastSeq })
	if keepsLater || len(upTo) < len(r.KeptUpTo) {
		upTo = append(upTo, lastSeq)
	}
	r.Places, r.KeptUpTo = places, upTo
}

// scopeOf returns the prefix of the scope of a call.
func scopeOf(name string) string { return name[:strings.LastIndex(name, naming.Separator)+1] }
