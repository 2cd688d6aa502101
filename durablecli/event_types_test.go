package durablecli

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// The types of events that --type knows are those of the library.
func TestAllEventTypesAreKnown(t *testing.T) {
	source, err := os.ReadFile("../events.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^\tEvent\w+ +EventType = "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(declared) < 9 {
		t.Fatalf("found %q in events.go", declared)
	}
	for _, d := range declared {
		if !slices.Contains(eventTypes, d[1]) {
			t.Errorf("eventTypes lacks %q", d[1])
		}
	}
}
