package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// mayWait are the functions of tests that may use timers, and why. The key is the file and the function.
var mayWait = map[string]string{
	"main_test.go poll":                                                   "the one loop of package durable_test that asks for a state again and again",
	"durablecli/main_test.go until":                                       "the one loop of package durablecli_test that asks for a state again and again",
	"faults/await_test.go within":                                         "the one loop of package faults that asks for a state again and again",
	"faults/process_test.go next":                                         "bounds the wait for a line of a process, and fails the test",
	"faults/proxy_test.go pass":                                           "a slow network is what the proxy plays",
	"internal/pgtest/server_test.go gone":                                 "asks the operating system whether a process has ended",
	"internal/journal/separate_tx_writer_test.go pass":                    "lets the time of a synctest bubble pass",
	"internal/results/waiters_test.go pass":                               "lets the time of a synctest bubble pass",
	"durabletest/signup_test.go TestUntilNothingMoreHappens":              "the condition that never holds is the misuse",
	"faults/late_test.go lateReply":                                       "the proxy lets a reply or a COMMIT go at a time that the test sets",
	"internal/engine/lonerun_test.go parked":                              "lets the time of a synctest bubble pass",
	"internal/clock/estimate_test.go Now":                                 "a query of the database's clock takes time in a synctest bubble",
	"internal/journal/writers_test.go TestAFlushWaitsForReturningCallers": "a commit that keeps its goroutine for a millisecond",
	"internal/store/model/hold_test.go when":                              "asks the database who waits, and gives up after a second",
	"parking_test.go TestWorkBesideAWaitPlain":                            "a computation of the workflow's own takes the processor",
}

// timers are the functions of package time that wait, or that something else waits with.
var timers = []string{"Sleep", "After", "NewTimer", "NewTicker", "Tick", "AfterFunc"}

// testsAwaitStates finds tests that wait for time instead of for a state: calls of package time's timers,
// conditions that never hold, and loops that spin until a time has come. Free are
//   - functions that call synctest.Test: the time in its bubble is not real;
//   - a case of a select that fails the test, which is a bound and no wait;
//   - realtime.Pass, whose reason has to be a literal of three words or more;
//   - the functions of mayWait.
func testsAwaitStates(f *file) (faults []string) {
	if !f.test() {
		return nil
	}
	for _, decl := range f.tree.Decls {
		name := ""
		if fn, ok := decl.(*ast.FuncDecl); ok {
			name = fn.Name.Name
		}
		if _, allowed := mayWait[f.name+" "+name]; allowed || calls(decl, "synctest", "Test") {
			continue
		}
		bounds := make(map[ast.Node]bool)
		ast.Inspect(decl, func(n ast.Node) bool {
			fault := func(format string, args ...any) {
				faults = append(faults, fmt.Sprintf("%s %s: await a state, use durabletest or testing/synctest, or say why in realtime.Pass", f.fset.Position(n.Pos()), fmt.Sprintf(format, args...)))
			}
			switch n := n.(type) {
			case *ast.CommClause:
				if n.Comm != nil && fails(n.Body) {
					bounds[n.Comm] = true
				}
			case ast.Stmt:
				if bounds[n] {
					return false
				}
				if loop, ok := n.(*ast.ForStmt); ok && loop.Cond != nil && (calls(loop.Cond, "time", "Since") || calls(loop.Cond, "time", "Until") || calls(loop.Cond, "time", "Now")) {
					fault("spins until a time has come")
				}
			case *ast.SelectorExpr:
				for _, timer := range timers {
					if isFunc(n, "time", timer) {
						fault("uses time.%s", timer)
					}
				}
			case *ast.FuncLit:
				if len(n.Body.List) == 1 {
					if r, ok := n.Body.List[0].(*ast.ReturnStmt); ok && len(r.Results) == 1 {
						if v, ok := r.Results[0].(*ast.Ident); ok && v.Name == "false" && len(n.Type.Params.List) == 0 {
							fault("waits for a condition that never holds")
						}
					}
				}
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && isFunc(s, "realtime", "Pass") && len(n.Args) == 2 {
					lit, ok := n.Args[1].(*ast.BasicLit)
					if !ok || lit.Kind != token.STRING {
						fault("passes a reason that is no literal")
					} else if reason, _ := strconv.Unquote(lit.Value); len(strings.Fields(reason)) < 3 {
						fault("gives the reason %q, which says nothing", reason)
					}
				}
			}
			return true
		})
	}
	return faults
}

func isFunc(s *ast.SelectorExpr, pkg, name string) bool {
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg && s.Sel.Name == name
}

// calls reports whether a function of a package is used anywhere in the node.
func calls(n ast.Node, pkg, name string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && isFunc(s, pkg, name) {
			found = true
		}
		return !found
	})
	return found
}

// fails reports whether the statements fail the test that they belong to.
func fails(body []ast.Stmt) (found bool) {
	for _, s := range body {
		ast.Inspect(s, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && (strings.HasPrefix(s.Sel.Name, "Fatal") || strings.HasPrefix(s.Sel.Name, "Error")) {
				found = true
			}
			return !found
		})
	}
	return found
}

// Each disguise of a wait is found, and what only bounds a test or runs in a bubble is not.
func TestDisguisedWaitsAreFound(t *testing.T) {
	const head = `package durable; import ("time"; "testing/synctest"; "x/realtime"); `
	for text, want := range map[string]int{
		`func f() { time.Sleep(1) }`:                                                      1,
		`func f() { <-time.After(1) }`:                                                    1,
		`func f() { t := time.NewTimer(1); <-t.C }`:                                       1,
		`func f() { for range time.Tick(1) {} }`:                                          1,
		`func f() { t := time.NewTicker(1); <-t.C }`:                                      1,
		`func f() { time.AfterFunc(1, g) }`:                                               1,
		`var wait = time.After`:                                                           1,
		`func pass(d time.Duration) { <-time.After(d) }`:                                  1,
		`func f() { within(1, func() bool { return false }) }`:                            1,
		`func f() { for time.Since(began) < 5 { } }`:                                      1,
		`func f() { for time.Now().Before(end) { } }`:                                     1,
		`func f() { select { case <-c: case <-time.After(1): } }`:                         1,
		`func f() { select { case <-c: case <-time.After(1): return } }`:                  1,
		`func f() { realtime.Pass(1, "later") }`:                                          1,
		`func later(d time.Duration, why string) { realtime.Pass(d, why) }`:               1,
		`func f(t T) { select { case <-c: case <-time.After(1): t.Fatal("no answer") } }`: 0,
		`func f(t T) { synctest.Test(t, func(t T) { <-time.After(1) }) }`:                 0,
		`func f() { realtime.Pass(1, "the lease must pass") }`:                            0,
		`func f() { ctx, stop := context.WithTimeout(c, time.Second) }`:                   0,
	} {
		f, err := parse("x_test.go", head+text)
		if err != nil {
			t.Fatal(err)
		}
		if got := testsAwaitStates(f); len(got) != want {
			t.Errorf("%s: %d faults, want %d: %q", text, len(got), want, got)
		}
	}
}

// The exceptions of mayWait are functions that are there, and that need one.
func TestExceptionsAreNeeded(t *testing.T) {
	there := make(map[string]bool)
	for _, f := range load(t) {
		for _, decl := range f.tree.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && f.test() {
				there[f.name+" "+fn.Name.Name] = true
			}
		}
	}
	for name, reason := range mayWait {
		if !there[name] {
			t.Errorf("%s may wait, but there is no such function", name)
		}
		if len(strings.Fields(reason)) < 3 {
			t.Errorf("%s may wait, and no reason is given", name)
		}
	}
}
