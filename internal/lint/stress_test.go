package lint

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// stressed is the expression after -run of a command of the Makefile: a prefix of names of tests, and how they may go on.
var stressed = regexp.MustCompile(`-run '\^(\w+)\(([\w|]+)\)`)

// unknownStressed returns the beginnings of names in the commands that no test has.
func unknownStressed(makefile string, tests map[string]bool) (unknown []string) {
	for _, m := range stressed.FindAllStringSubmatch(makefile, -1) {
		for part := range strings.SplitSeq(m[2], "|") {
			found := false
			for name := range tests {
				found = found || strings.HasPrefix(name, m[1]+part)
			}
			if !found {
				unknown = append(unknown, m[1]+part)
			}
		}
	}
	return unknown
}

// make stress repeats tests that exist: one whose name has changed would be left out silently.
func TestStressNamesTestsThatExist(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	tests := takeInventory(t).tests
	if n := len(stressed.FindAllString(string(makefile), -1)); n < 5 {
		t.Errorf("the Makefile has %d commands with names of tests, want those of make stress", n)
	}
	for _, name := range unknownStressed(string(makefile), tests) {
		t.Errorf("the Makefile repeats %s, and no test has this name", name)
	}
	if got := unknownStressed(`-run '^Test(NothingOfTheKind|Stress)' .`, tests); len(got) != 1 || got[0] != "TestNothingOfTheKind" {
		t.Errorf("an unknown name is not found: %q", got)
	}
}
