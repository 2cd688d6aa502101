package record

import (
	"slices"
	"strings"
	"testing"
)

// TestDeciders checks which recorded choices the choice in the code may continue.
func TestDeciders(t *testing.T) {
	of := []string{"a", "b", "c"}
	now := Choice{Of: of, Wanted: 1}
	for record, want := range map[string]struct {
		deciders []int
		err      string // a part of it; empty: none
	}{
		`{"won":[2],"of":["a","b","c"],"wanted":1}`:             {[]int{2}, ""},
		`{"won":[2],"of":["a","b"],"wanted":1}`:                 {nil, "is recorded as 1 of [a, b], ending the others, and the code makes it 1 of [a, b, c], ending the others"},
		`{"won":[2],"of":["a","b","c"],"wanted":1,"keep":true}`: {nil, "keeping the others"},
		`{"failed":[0],"of":["a","b","c"]}`:                     {nil, "the first failure of"},
		`{"won":[3],"of":["a","b","c"],"wanted":1}`:             {nil, "recorded branch 3, and there are now 3"},
		`{"won":[-1],"of":["a","b","c"],"wanted":1}`:            {nil, "recorded branch -1"},
		`{"won":[0,1],"of":["a","b","c"],"wanted":1}`:           {nil, "recorded 2 branches that decided it"},
		`{"failed":[0],"of":["a","b","c"],"wanted":1}`:          {nil, "decided by success, and the code's by failure, or the other way round"},
		`[1]`:                           {[]int{1}, ""}, // the oldest form
		`[7]`:                           {nil, "recorded branch 7"},
		`{"won":[1],"ended":["a","c"]}`: {[]int{1}, ""}, // written before records named all branches
	} {
		c, err := DecodeChoice([]byte(record))
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Deciders(&now)
		if !slices.Equal(got, want.deciders) || (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%s: %v, %v", record, got, err)
		}
	}
}

// TestChoiceRoundTrip checks that a choice is read as it was written, and that other bytes are an error.
func TestChoiceRoundTrip(t *testing.T) {
	for _, made := range []Choice{{Of: []string{"a", "b"}, Wanted: 2}, {Of: []string{"a", "b"}}} {
		branches := []int{1}
		made.SetDeciders(branches)
		made.Ended, made.Returned = []string{"a"}, []string{"b"}
		b, err := made.Encode()
		if err != nil {
			t.Fatal(err)
		}
		read, err := DecodeChoice(b)
		if err != nil || !slices.Equal(read.Of, made.Of) || !slices.Equal(read.Won, made.Won) || !slices.Equal(read.Failed, made.Failed) ||
			!slices.Equal(read.Ended, made.Ended) || !slices.Equal(read.Returned, made.Returned) || read.Wanted != made.Wanted {
			t.Errorf("%+v was read as %+v: %v", made, read, err)
		}
	}
	for _, b := range []string{"", "null1", "[", `"text"`} {
		if _, err := DecodeChoice([]byte(b)); err == nil {
			t.Errorf("%q was read as a choice", b)
		}
	}
}
