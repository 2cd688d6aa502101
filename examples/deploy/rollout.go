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
	"slices"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/examples/internal/fleet"
)

// rollout holds what lives in the parent process.
type rollout struct {
	began    time.Time
	orders   int
	place    fleet.Place
	folder   string
	ledger   *ledger
	engine   *durable.Engine // a client: it executes nothing
	workflow *durable.Workflow[Order, Receipt]
	workers  map[string]*fleet.Process // by their releases
	fail     func(error)               // ends the demo
}

// deploy is the main function of the parent process.
func deploy(ctx context.Context, store string, orders int) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	folder, err := os.MkdirTemp("", "durable-deploy-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	r := &rollout{began: time.Now(), orders: orders, folder: folder, workers: make(map[string]*fleet.Process), fail: fail}
	done := func() error { return nil }
	if r.place, done, err = fleet.Provide("deploy", store, folder); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	database, l, err := open(ctx, r.place, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	r.ledger, r.workflow = l, newOrders(l)
	if r.engine, err = durable.New(database, durable.Config{}); err != nil {
		return err
	}
	defer func() {
		if ctx.Err() != nil {
			err = context.Cause(ctx) // the first failure, in any goroutine
		}
		for _, w := range r.workers {
			err = errors.Join(err, w.Stop())
		}
	}()
	for _, release := range []string{first, renamed, fixed} {
		if err := r.build(ctx, release); err != nil {
			return err
		}
	}
	r.say("built the releases %s, %s and %s", first, renamed, fixed)
	diverged, err := r.rollOut(ctx)
	if err != nil {
		return err
	}
	mended, err := r.repair(ctx)
	if err != nil {
		return err
	}
	return r.report(ctx, diverged, mended)
}

func (r *rollout) say(format string, args ...any) {
	fmt.Printf("%5.1f s  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

func (r *rollout) program(release string) string { return filepath.Join(r.folder, "shop-"+release) }

// build builds this program as a release.
func (r *rollout) build(ctx context.Context, release string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-X main.release="+release, "-o", r.program(release), "github.com/seed8ec063be/durable/examples/deploy")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build release %s, which needs Go and this repository as the current folder: %w\n%s", release, err, out)
	}
	return nil
}

// start starts a worker process of a release.
func (r *rollout) start(release string) (err error) {
	r.workers[release], err = r.place.StartProgram(r.program(release), release, nil, r.fail, "-role=worker", "-folder="+r.folder)
	return err
}

// stop ends the worker of a release, which drains.
func (r *rollout) stop(release string) error {
	w := r.workers[release]
	delete(r.workers, release)
	return w.Stop()
}

// preflight asks a release what it would make of the live orders.
func (r *rollout) preflight(release string) (*durable.PreflightReport, error) {
	var out bytes.Buffer
	p, err := r.place.StartProgram(r.program(release), "the preflight of "+release, &out, nil, "-role=preflight", "-folder="+r.folder)
	if err == nil {
		err = p.Err()
	}
	if err != nil {
		return nil, err
	}
	report := new(durable.PreflightReport)
	return report, json.Unmarshal(out.Bytes(), report)
}

// rollOut replaces the first release by the second one, and that by the third one, while orders go on. It returns how many orders
// the second release did not fit.
func (r *rollout) rollOut(ctx context.Context) (diverged int, err error) {
	if err := r.start(first); err != nil {
		return 0, err
	}
	if err := r.placeOrders(ctx); err != nil {
		return 0, err
	}
	r.say("%s has %d live orders: as many wait before the charge as after it, and after the shipment", first, r.orders)

	report, err := r.preflight(renamed)
	if err != nil {
		return 0, err
	}
	if err := r.checkPreflight(report); err != nil {
		return 0, err
	}
	diverged = report.Diverged
	r.say("the preflight of %s: %d orders fit, %d do not, such as %s", renamed, report.Fit, diverged, firstDiverged(report))

	if err := r.start(renamed); err != nil {
		return 0, err
	}
	if err := r.send(ctx, 0); err != nil {
		return 0, err
	}
	if err := r.await(ctx, 0, durable.StatusCompleted, nil); err != nil {
		return 0, fmt.Errorf("beside each other, %s and %s: %w", first, renamed, err)
	}
	r.say("%s is deployed beside %s: a third of the orders went on, and all of them completed", renamed, first)

	if err := r.stop(first); err != nil {
		return 0, err
	}
	if err := r.send(ctx, 1); err != nil {
		return 0, err
	}
	if err := r.await(ctx, 1, durable.StatusCompleted, hasShipped); err != nil {
		return 0, fmt.Errorf("%s alone: %w", renamed, err)
	}
	r.say("%s has ended: of the second third, %s completed the orders that it fits, and the others are held", first, renamed)

	if report, err = r.preflight(fixed); err != nil {
		return 0, err
	}
	if report.Diverged != 0 || report.Unknown != 0 {
		return 0, fmt.Errorf("the preflight of %s: %d orders do not fit, such as %s", fixed, report.Diverged, firstDiverged(report))
	}
	if err := r.start(fixed); err != nil {
		return 0, err
	}
	if err := r.stop(renamed); err != nil {
		return 0, err
	}
	if err := r.await(ctx, 1, durable.StatusCompleted, nil); err != nil {
		return 0, fmt.Errorf("%s: %w", fixed, err)
	}
	r.say("%s fits all orders, and has completed those that were held", fixed)
	return diverged, nil
}

// placeOrders starts all orders, and waits until each one is where it is to be when the deployment begins.
func (r *rollout) placeOrders(ctx context.Context) error {
	items := make([]durable.StartItem[Order], r.orders)
	for n := range items {
		items[n] = durable.StartItem[Order]{ID: orderID(n), Input: Order{Number: n, BadAddress: hasBadAddress(n)}}
	}
	if _, err := r.workflow.StartMany(ctx, r.engine, items); err != nil {
		return err
	}
	for n := range r.orders {
		for _, signal := range signals[:waitsFor(n)] {
			if err := r.engine.Signal(ctx, orderID(n), signal, true); err != nil {
				return err
			}
		}
	}
	return r.poll(ctx, "the orders to wait for their signals", func() (missing string, err error) {
		for n := range r.orders {
			info, err := r.engine.Get(ctx, orderID(n))
			if err != nil {
				return "", err
			}
			if info.Status != durable.StatusWaiting || len(info.OpenCalls) != 1 || info.OpenCalls[0].Name != signals[waitsFor(n)] {
				return fmt.Sprintf("%s is %s", info.ID, info.Status), nil
			}
		}
		return "", nil
	})
}

// checkPreflight checks that exactly the shipped orders do not fit, and that the reason names the step.
func (r *rollout) checkPreflight(report *durable.PreflightReport) error {
	var found []string
	for _, run := range report.Runs {
		if run.Diverged {
			found = append(found, run.ID)
			if run.Call != "ship order" || !bytes.Contains([]byte(run.Reason), []byte(`"ship"`)) {
				return fmt.Errorf("the preflight does not name the renamed step: %+v", run)
			}
		}
	}
	var want []string
	for _, n := range numbers(r.orders, hasShipped) {
		want = append(want, orderID(n))
	}
	slices.Sort(found)
	if !slices.Equal(found, want) || report.Unknown != 0 {
		return fmt.Errorf("the preflight finds %d orders that do not fit, and %d unknown ones; want %d", len(found), report.Unknown, len(want))
	}
	return nil
}

func firstDiverged(report *durable.PreflightReport) string {
	for _, run := range report.Runs {
		if run.Diverged {
			return fmt.Sprintf("%s: %s", run.ID, run.Reason)
		}
	}
	return "none"
}

// send sends a wave of orders the signals that they have not received yet.
func (r *rollout) send(ctx context.Context, wave int) error {
	for _, n := range numbers(r.orders, func(n int) bool { return waveOf(n) == wave }) {
		for _, signal := range signals[waitsFor(n):] {
			if err := r.engine.Signal(ctx, orderID(n), signal, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// await waits until the orders of a wave have a status. Those for which held returns true are to be held instead.
func (r *rollout) await(ctx context.Context, wave int, status durable.Status, held func(int) bool) error {
	return r.poll(ctx, fmt.Sprintf("wave %d", wave+1), func() (missing string, err error) {
		for _, n := range numbers(r.orders, func(n int) bool { return waveOf(n) == wave }) {
			info, err := r.engine.Get(ctx, orderID(n))
			if err != nil {
				return "", err
			}
			want, isHeld := status, held != nil && held(n)
			if isHeld {
				want = durable.StatusPaused
			}
			switch {
			case info.Status == durable.StatusFailed && want != durable.StatusFailed:
				return "", fmt.Errorf("%s failed: %w", info.ID, info.Err)
			case info.Status != want || isHeld != info.Diverged:
				return fmt.Sprintf("%s is %s: %s", info.ID, info.Status, info.Reason), nil
			}
		}
		return "", nil
	})
}

// poll waits until check misses nothing.
func (r *rollout) poll(ctx context.Context, what string, check func() (missing string, err error)) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		missing, err := check()
		if err != nil || missing == "" {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited for %s, and %s: %w", what, missing, context.Cause(ctx))
		}
	}
}
