package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/examples/internal/fleet"
)

// demo is the main function of the parent process. It does the same work twice, undisturbed and
// with kills, and compares the results.
func demo(ctx context.Context, store string, kills int) (err error) {
	began := time.Now()
	folder, err := os.MkdirTemp("", "durable-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	base, done, err := fleet.Provide("demo", store, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	root, err := sourceTree(ctx)
	if err != nil {
		return err
	}
	paths, err := listPackages(root) // only to know the number of steps
	if err != nil {
		return err
	}
	steps := len(paths) + 2 // the step that lists the packages, and the report

	calm := &trial{name: "calm", where: base.Fresh("calm"), folder: folder, root: root, steps: steps}
	fmt.Printf("indexing the %d packages of the Go source tree as one run of %d steps, on %s\n\n", len(paths), steps, store)
	if err := calm.execute(ctx); err != nil {
		return fmt.Errorf("the undisturbed run: %w", err)
	}
	hard := &trial{name: "killed", where: base.Fresh("killed"), folder: folder, root: root, steps: steps, plan: plan(steps, kills)}
	if err := hard.execute(ctx); err != nil {
		return fmt.Errorf("the run whose workers are killed: %w", err)
	}

	equal := bytes.Equal(calm.output, hard.output)
	var report Report
	if err := json.Unmarshal(hard.output, &report); err != nil {
		return fmt.Errorf("read the report: %w", err)
	}
	report.print(os.Stdout)
	fmt.Printf("\ndemo: steps=%d kills=%d reexecuted=%d equal=%t seconds=%.1f\n",
		hard.completed, len(hard.takeovers), hard.reexecuted, equal, time.Since(began).Seconds())
	return verdict(calm, hard, kills, equal)
}

// verdict returns an error with everything that is wrong with a demo that has finished, or nil.
func verdict(calm, hard *trial, kills int, equal bool) error {
	var wrong []error
	find := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	find(len(hard.takeovers) != kills, "%d of %d kills hit the run in progress", len(hard.takeovers), kills)
	find(hard.completed != hard.steps, "%d steps are checkpointed, %d were to do", hard.completed, hard.steps)
	find(calm.reexecuted+hard.reexecuted > 0, "steps ran again after their checkpoint was committed: %s",
		strings.Join(append(calm.offenders, hard.offenders...), ", "))
	find(!equal, "the killed run's report differs from the undisturbed one's")
	return errors.Join(wrong...)
}

// sourceTree returns the folder of the Go toolchain's source.
func sourceTree(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("ask go for GOROOT: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src"), nil
}
