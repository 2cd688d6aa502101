// Command mutants introduces defects into a copy of the source tree, one at a time, and reports which
// test fails. A guarantee whose check can be removed without a failing test is not tested.
//
//	go run ./mutants          all of them
//	go run ./mutants fence    those whose name contains the word
//
// Each mutant replaces text in one or more files, one file at a time. If a file no longer contains the
// text, the command fails, and the mutant must be updated.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	word := ""
	if len(os.Args) > 1 {
		word = os.Args[1]
	}
	if err := run(ctx, word); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, word string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return !strings.Contains(m.name, word) })
	for _, m := range chosen {
		for _, p := range m.places {
			if _, _, err := p.mutatedText(root); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
	}
	tree, err := os.MkdirTemp("", "durable-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	if err := copyTree(root, tree); err != nil {
		return err
	}
	if err := checkUnchangedTree(ctx, tree, chosen); err != nil {
		return err
	}
	killed := 0
	for _, m := range chosen {
		if m.isDetected(ctx, tree) {
			killed++
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	fmt.Printf("mutants: killed=%d/%d\n", killed, len(chosen))
	if killed < len(chosen) {
		return errors.New("some live: write the tests that they need")
	}
	return nil
}

// checkUnchangedTree runs the tests on the unchanged copy. A test that fails there cannot detect a mutant.
func checkUnchangedTree(ctx context.Context, tree string, chosen []mutant) error {
	var done []test
	for _, m := range chosen {
		for _, p := range m.places {
			tests := []test{p.detectingTest}
			if t, ok := p.validityTest(); ok {
				tests = append(tests, t)
			}
			for _, t := range tests {
				if slices.Contains(done, t) {
					continue
				}
				done = append(done, t)
				switch failed, output, err := t.run(ctx, tree); {
				case err != nil:
					return err
				case failed != "":
					return fmt.Errorf("without any mutant, %s fails:\n%s", failed, output)
				}
			}
		}
	}
	return nil
}

// isDetected reports whether the tests detected the mutant in each of its places.
func (m *mutant) isDetected(ctx context.Context, tree string) bool {
	all := true
	for _, p := range m.places {
		began := time.Now()
		by, output, err := p.checkDetected(ctx, tree)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			fmt.Printf("%-33s %-30s ERROR: %v\n", m.name, p.file, err)
		case by == "":
			fmt.Printf("%-33s %-30s LIVES: %s -run %q passes\n%s", m.name, p.file, p.detectingTest.pkg, p.detectingTest.name, output)
		default:
			fmt.Printf("%-33s %-30s caught by %s (%.0f s)\n", m.name, p.file, by, time.Since(began).Seconds())
		}
		all = all && err == nil && by != ""
	}
	return all
}

// checkDetected applies the change, runs the test that should fail, and reverts the change. It returns the name
// of the test that failed.
func (p *place) checkDetected(ctx context.Context, tree string) (by, output string, err error) {
	was, now, err := p.mutatedText(tree)
	if err != nil {
		return "", "", err
	}
	path := filepath.Join(tree, p.file)
	if err := os.WriteFile(path, now, 0o600); err != nil {
		return "", "", err
	}
	by, output, err = p.test(ctx, tree)
	return by, output, errors.Join(err, os.WriteFile(path, was, 0o600))
}

// test runs the test that should detect the change. It returns an error if the changed file is not a
// valid program or statement.
func (p *place) test(ctx context.Context, tree string) (by, output string, err error) {
	if t, ok := p.validityTest(); ok {
		switch failed, output, err := t.run(ctx, tree); {
		case err != nil:
			return "", output, err
		case failed != "":
			return "", output, fmt.Errorf("what was changed is no statement any more, so the mutant must be written anew:\n%s", output)
		}
	}
	return p.detectingTest.run(ctx, tree)
}

// mutatedText returns the text of the file without and with the change.
func (p *place) mutatedText(tree string) (was, now []byte, err error) {
	was, err = os.ReadFile(filepath.Join(tree, p.file))
	if err != nil {
		return nil, nil, err
	}
	now = was
	for _, c := range p.changes {
		if n := bytes.Count(now, []byte(c.old)); n != 1 {
			return nil, nil, fmt.Errorf("%s contains this text %d times instead of once, so the mutant must be written anew:\n%s", p.file, n, c.old)
		}
		now = bytes.Replace(now, []byte(c.old), []byte(c.new), 1)
	}
	return was, now, nil
}

var failedTestPattern = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// run returns the innermost test that failed, or an empty text if none failed.
func (t *test) run(ctx context.Context, tree string) (failed, output string, err error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout=1m", "-run", t.name, t.pkg)
	cmd.Dir = tree
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	output = string(out)
	if strings.Contains(output, "no tests to run") {
		return "", output, fmt.Errorf("there is no test %q in %s", t.name, t.pkg)
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", output, nil
	case !errors.As(err, &exit):
		return "", output, err
	}
	for _, m := range failedTestPattern.FindAllStringSubmatch(output, -1) {
		if strings.HasPrefix(m[1], failed) {
			failed = m[1]
		}
	}
	if failed == "" && strings.Contains(output, "panic: ") {
		failed = "a panic of " + t.name
	}
	if failed == "" {
		return "", output, fmt.Errorf("the tests of %s did not run:\n%s", t.pkg, output)
	}
	return failed, output, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// copyTree copies the files that go test needs.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && rel != "." && strings.HasPrefix(name, "."):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case !d.Type().IsRegular() || filepath.Ext(name) == ".test":
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o600)
	})
}
