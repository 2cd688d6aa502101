package main

import (
	"path/filepath"
	"testing"
)

// The proof is worth what its auditor finds: here it is shown executions that must not be.
func TestAuditor(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ledger")
	process := func(steps ...string) {
		t.Helper()
		l, err := openLedger(name)
		if err != nil {
			t.Fatal(err)
		}
		defer l.file.Close()
		for _, s := range steps {
			l.begin(s)
		}
	}
	a, err := newAuditor(name)
	if err != nil {
		t.Fatal(err)
	}
	defer a.file.Close()
	expect := func(names ...string) {
		t.Helper()
		if err := a.read(); err != nil {
			t.Fatal(err)
		}
		if len(a.reexecuted) != len(names) {
			t.Fatalf("blamed are %v, want %v", a.reexecuted, names)
		}
		for _, n := range names {
			if !a.reexecuted[n] {
				t.Fatalf("%q is not blamed", n)
			}
		}
	}

	process("a", "b", "c")
	// b began, its process was killed before the checkpoint: it may run again.
	interrupted, err := a.commit([]string{"a", "c"})
	if err != nil || interrupted != 1 {
		t.Fatal(interrupted, err)
	}
	process("b", "d")
	expect()
	process("a")
	expect("a") // its checkpoint was there before this process began
	process("e", "e")
	expect("a", "e") // twice in one process
}

// A line that is half written when the auditor looks is judged when it is whole.
func TestAuditorWaitsForWholeLines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ledger")
	l, err := openLedger(name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.file.Close()
	a, err := newAuditor(name)
	if err != nil {
		t.Fatal(err)
	}
	defer a.file.Close()
	for i, part := range []string{"package f", "mt\tX-1", "\n"} {
		if _, err := l.file.WriteString(part); err != nil {
			t.Fatal(err)
		}
		if err := a.read(); err != nil {
			t.Fatal(err)
		}
		if whole := a.begun["package fmt"] == "X"; whole != (i == 2) {
			t.Fatalf("after part %d: %v", i, a.begun)
		}
	}
}

// Whatever is not as promised ends the demo with an error.
func TestVerdict(t *testing.T) {
	calm := &trial{}
	for name, c := range map[string]struct {
		hard  trial
		kills int
		equal bool
		good  bool
	}{
		"as promised":    {trial{steps: 9, completed: 9}, 0, true, true},
		"a kill missing": {trial{steps: 9, completed: 9}, 1, true, false},
		"a step missing": {trial{steps: 9, completed: 8}, 0, true, false},
		"re-executed":    {trial{steps: 9, completed: 9, reexecuted: 1, offenders: []string{"a"}}, 0, true, false},
		"another report": {trial{steps: 9, completed: 9}, 0, false, false},
	} {
		if err := verdict(calm, &c.hard, c.kills, c.equal); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Kills lie apart, in order, and inside of the work, however few steps there are.
func TestPlan(t *testing.T) {
	for range 1000 {
		at := plan(776, 5)
		for i, n := range at {
			if n < 1 || n > 776*95/100 || i > 0 && n <= at[i-1] {
				t.Fatal(at)
			}
		}
	}
}
