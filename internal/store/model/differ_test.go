package model_test

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// differ returns how two results differ, or an empty text: times as instants, payloads
// bytewise and NULL apart from empty, lists without rows alike.
func differ(got, want any) string {
	return compare("", reflect.ValueOf(got), reflect.ValueOf(want))
}

func compare(at string, got, want reflect.Value) string {
	if got.IsValid() != want.IsValid() {
		return fmt.Sprintf("%s: got %v, want %v", at, got, want)
	}
	if !got.IsValid() {
		return ""
	}
	switch w := want.Interface().(type) {
	case time.Time:
		if g := got.Interface().(time.Time); !g.Equal(w) {
			return fmt.Sprintf("%s: got %s, want %s", at, offset(g), offset(w))
		}
		return ""
	case []byte:
		if g := got.Interface().([]byte); (g == nil) != (w == nil) || !bytes.Equal(g, w) {
			return fmt.Sprintf("%s: got %s, want %s", at, payload(g), payload(w))
		}
		return ""
	case uuid.UUID:
		if g := got.Interface().(uuid.UUID); g != w {
			return fmt.Sprintf("%s: got %s, want %s", at, shorten(g), shorten(w))
		}
		return ""
	}
	switch want.Kind() {
	case reflect.Pointer:
		if got.IsNil() || want.IsNil() {
			if got.IsNil() != want.IsNil() {
				return fmt.Sprintf("%s: got %s, want %s", at, presence(got), presence(want))
			}
			return ""
		}
		return compare(at, got.Elem(), want.Elem())
	case reflect.Struct:
		for i := range want.NumField() {
			if text := compare(at+"."+want.Type().Field(i).Name, got.Field(i), want.Field(i)); text != "" {
				return text
			}
		}
		return ""
	case reflect.Slice:
		for i := range min(got.Len(), want.Len()) {
			if text := compare(fmt.Sprintf("%s[%d]", at, i), got.Index(i), want.Index(i)); text != "" {
				return text
			}
		}
		if got.Len() != want.Len() {
			return fmt.Sprintf("%s: got %d rows, want %d", at, got.Len(), want.Len())
		}
		return ""
	}
	if !reflect.DeepEqual(got.Interface(), want.Interface()) {
		return fmt.Sprintf("%s: got %v, want %v", at, got, want)
	}
	return ""
}

func presence(v reflect.Value) string {
	if v.IsNil() {
		return "none"
	}
	return fmt.Sprintf("%+v", v.Elem())
}

func offset(t time.Time) string {
	if t.IsZero() {
		return "no time"
	}
	return t.Sub(base).String()
}

func payload(b []byte) string {
	if b == nil {
		return "NULL"
	}
	return fmt.Sprintf("%q", b)
}

// shorten is what of an ID differs: its number.
func shorten(id uuid.UUID) string { return fmt.Sprintf("#%d", number(id)) }

func sortIDs(ids []uuid.UUID) {
	slices.SortFunc(ids, func(l, r uuid.UUID) int { return bytes.Compare(l[:], r[:]) })
}

// settledBatch drops what a store may tell or not: State is compared with Fenced, and else
// only whether Control is told; and of what the same transaction goes on to change, a
// store may tell what it was or what it became.
func settledBatch(b *store.Batch, ends func(run uuid.UUID) bool) {
	for _, w := range b.Starts {
		if w.ExistingRun != nil && (ends(w.ExistingRun.UUID) || wakes(b, w.ExistingRun.UUID)) {
			w.ExistingRun = &store.Run{UUID: w.ExistingRun.UUID}
		}
		if ends(w.Run.Parent.UUID) {
			w.RunState = store.RunState{}
		}
		if w.Outcome != store.Fenced {
			w.RunState = store.RunState{}
		}
	}
	for _, w := range b.Steps {
		w.RunState = settledState(w.Outcome, w.RunState, w.Step.Epoch, ends(w.Step.Run))
	}
	for _, w := range b.Receives {
		w.RunState = settledState(w.Outcome, w.RunState, w.Step.Epoch, ends(w.Step.Run))
	}
	for _, w := range b.Signals {
		if w.Outcome != store.Fenced || ends(w.Run) {
			w.RunState = store.RunState{}
		}
	}
	for _, w := range b.OwnershipEnds {
		if w.Outcome != store.Fenced {
			w.RunState = store.RunState{}
		}
	}
}

// wakes reports whether the batch may wake the run.
func wakes(b *store.Batch, run uuid.UUID) bool {
	return slices.ContainsFunc(b.Signals, func(w *store.SignalWrite) bool { return w.Run == run }) ||
		slices.ContainsFunc(b.OwnershipEnds, func(w *store.OwnershipEnd) bool { return w.ParentToWake.UUID == run })
}

// settledState keeps Control where the writer must hear of it. One that leaves the run in
// the same transaction hears of it there.
func settledState(o store.WriteOutcome, s store.RunState, epoch store.Epoch, leaves bool) store.RunState {
	switch {
	case leaves:
		return store.RunState{}
	case o == store.Fenced:
		return s
	case s.Found && s.Status == store.Running && s.Epoch == epoch && s.Control != 0:
		return s
	}
	return store.RunState{}
}

func settledOwnedRunChanges(n store.OwnedRunChanges) store.OwnedRunChanges {
	n.ControlRequests, n.Woken = slices.Clone(n.ControlRequests), slices.Clone(n.Woken)
	n.ChangedDeadlines, n.EndedLeases = nil, nil // of these a store may tell again, or later: see storetest
	slices.SortFunc(n.ControlRequests, func(l, r store.PendingControl) int { return cmp.Or(bytes.Compare(l.Run[:], r.Run[:])) })
	sortIDs(n.Woken)
	return n
}
