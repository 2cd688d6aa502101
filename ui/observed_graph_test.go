package ui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A history is drawn as what happened after what: branches beside each other, Maps as one box, and a call after a branch that had ended.
func TestObservedGraph(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	call := func(name string, kind durable.Kind, from, to int) durable.Checkpoint {
		c := durable.Checkpoint{Name: name, Kind: kind, Status: durable.CheckpointCompleted, StartedAt: at(from), EndedAt: at(to)}
		if to == 0 {
			c.Status, c.EndedAt = durable.CheckpointStarted, time.Time{}
		}
		return c
	}
	history := []durable.Checkpoint{
		call("first", durable.KindStep, 0, 10),
		call("when", durable.KindNow, 10, 10),
		call("left/one", durable.KindStep, 11, 20),
		call("right/kid", durable.KindChild, 12, 60),
		call("left/two", durable.KindStep, 21, 30),
		call("log", durable.KindStep, 40, 41), // left is over, right is not
		call("items", durable.KindMap, 61, 70),
		call("items/0", durable.KindStep, 61, 63),
		call("items/1", durable.KindStep, 63, 70),
		call("a%2Fb", durable.KindStep, 71, 80),
		call("approve", durable.KindReceive, 81, 0),
	}
	d := newObservedGraph(history, map[string]string{"right/kid": "its-uuid"})
	var arrows []string
	for _, a := range d.Arrows {
		arrows = append(arrows, strings.ReplaceAll(a.Title, " → ", ">"))
	}
	slices.Sort(arrows)
	want := []string{"a%2Fb>approve", "first>left/one", "first>right/kid", "items>a%2Fb", "left/one>left/two", "left/two>log", "log>items", "right/kid>items"}
	if !slices.Equal(arrows, want) {
		t.Errorf("the arrows are %v, not %v", arrows, want)
	}
	if d.Calls != 8 || len(d.Boxes) != 8 {
		t.Errorf("%d calls are drawn as %d boxes", d.Calls, len(d.Boxes))
	}
	for _, b := range d.Boxes {
		switch {
		case b.Label == "items" && b.StateText != "completed 2 of 2", b.Label == "approve" && b.State != durable.NodeRunning, (b.Label == "right/kid") != (b.Child == "its-uuid"):
			t.Errorf("a box is %+v", b)
		}
	}
	if newObservedGraph(history[:2], nil) != nil {
		t.Error("a single call is drawn")
	}
	var long []durable.Checkpoint
	for i := range 10_000 {
		long = append(long, call(strings.Repeat("x", i%7)+string(rune('a'+i%26))+time.Duration(i).String(), durable.KindStep, 2*i, 2*i+1))
	}
	if d := newObservedGraph(long, nil); d.Calls != 10_000 || len(d.Boxes) != mostObserved || len(d.Arrows) != mostObserved-1 {
		t.Errorf("10,000 calls in a row are drawn as %d boxes and %d arrows", len(d.Boxes), len(d.Arrows))
	}
}
