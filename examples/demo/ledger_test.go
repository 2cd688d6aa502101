package main

import (
	"path/filepath"
	"testing"
)

// TestAuditor gives the auditor executions that must not happen. The demo proves something only if
// the auditor finds them.
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
	// The process was killed after it had begun b, and before the checkpoint of b, so b may be
	// executed again.
	interrupted, err := a.commit([]string{"a", "c"})
	if err != nil || interrupted != 1 {
		t.Fatal(interrupted, err)
	}
	process("b", "d")
	expect()
	process("a")
	expect("a") // the checkpoint of a was committed before this process began it
	process("e", "e")
	expect("a", "e") // one process began e twice
}

// TestAuditorWaitsForWholeLines checks that a half-written line is checked once it is complete.
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

// TestVerdict checks that every violation ends the demo with an error.
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

// TestPlan checks that the kills are distinct, in order and within the work.
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
