package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed8ec063be/durable"
)

// repairCounts counts the repairs.
type repairCounts struct{ retried, overridden, forked int }

// rightPrice is what an order that was priced wrongly costs.
const rightPrice = 12

// copyID is the ID of the order that is forked.
const copyID = "order-copy"

// repair lets the last wave go on, of which some orders fail. It retries them, corrects a price, and forks an order.
func (r *rollout) repair(ctx context.Context) (m repairCounts, err error) {
	if err := r.send(ctx, waves-1); err != nil {
		return m, err
	}
	bad := numbers(r.orders, hasBadAddress)
	err = r.poll(ctx, "the last wave", func() (string, error) {
		for _, n := range numbers(r.orders, func(n int) bool { return waveOf(n) == waves-1 }) {
			info, err := r.engine.Get(ctx, orderID(n))
			if err != nil || info.EndedAt.IsZero() {
				return orderID(n) + " has not ended", err
			}
			if failed := info.Status == durable.StatusFailed; failed != hasBadAddress(n) {
				return "", fmt.Errorf("%s is %s", info.ID, info.Status)
			}
		}
		return "", nil
	})
	if err != nil {
		return m, err
	}
	r.say("%d orders of the last third failed at their receipt, because of bad addresses", len(bad))

	if err := r.ledger.correctAddresses(); err != nil {
		return m, err
	}
	who := []durable.ControlOption{durable.Actor("ada"), durable.Reason("the addresses are corrected")}
	all, err := r.engine.RetryAll(ctx, durable.Filter{Workflow: "order"}, who...)
	if err != nil {
		return m, err
	}
	if len(all.Refused) > 0 {
		return m, fmt.Errorf("%d retries were refused: %w", len(all.Refused), all.Refused[0].Err)
	}
	m.retried = len(all.Repaired)

	priced := orderID(0)
	if _, err := r.engine.Override(ctx, priced, "price", rightPrice, durable.FromEnd(), durable.Actor("ada"), durable.Reason("the old price list")); err != nil {
		return m, err
	}
	m.overridden++
	if _, err := r.engine.Fork(ctx, priced, durable.From("send receipt"), durable.NewID(copyID), durable.Reason("the customer lost the receipt")); err != nil {
		return m, err
	}
	m.forked++
	for _, id := range []string{priced, copyID} {
		run, err := r.workflow.Handle(ctx, r.engine, id)
		if err != nil {
			return m, err
		}
		if receipt, err := run.Result(ctx); err != nil || receipt.Price != rightPrice {
			return m, errors.Join(fmt.Errorf("%s has the price %d", id, receipt.Price), err)
		}
	}
	if err := r.await(ctx, waves-1, durable.StatusCompleted, nil); err != nil {
		return m, err
	}
	r.say("%d were retried from there, the price of %s was corrected, and %s is a fork of it", m.retried, priced, copyID)
	return m, nil
}

// report checks the ledger and the orders, and prints the last line.
func (r *rollout) report(ctx context.Context, diverged int, m repairCounts) error {
	effects, err := r.ledger.read()
	if err != nil {
		return err
	}
	done := make(map[[2]string]int)
	for _, e := range effects {
		step := e.step
		if step == "ship order" {
			step = "ship"
		}
		done[[2]string{orderID(e.order), step}]++
	}
	done[[2]string{orderID(0), "send receipt"}]-- // the fork's
	chargedTwice := 0
	var wrong []string
	for n := range r.orders {
		for _, step := range []string{"price", "charge", "ship", "send receipt"} {
			if times := done[[2]string{orderID(n), step}]; times != 1 {
				wrong = append(wrong, fmt.Sprintf("%s: %q was executed %d times", orderID(n), step, times))
				if step == "charge" && times > 1 {
					chargedTwice++
				}
			}
		}
	}
	statuses := make(map[durable.Status]int)
	for page := (durable.Page{Limit: 1000}); ; {
		list, err := r.engine.List(ctx, durable.Filter{Workflow: "order"}, page)
		if err != nil {
			return err
		}
		for _, run := range list.Runs {
			statuses[run.Status]++
		}
		if page.Cursor = list.Next; page.Cursor == "" {
			break
		}
	}
	fmt.Printf("\ndeploy: runs=%d diverged=%d failed=%d charged_twice=%d held_left=%d retried=%d overridden=%d forked=%d seconds=%.1f\n",
		r.orders, diverged, statuses[durable.StatusFailed], chargedTwice, statuses[durable.StatusPaused], m.retried, m.overridden, m.forked, time.Since(r.began).Seconds())
	if statuses[durable.StatusCompleted] != r.orders+m.forked {
		wrong = append(wrong, fmt.Sprintf("%d of %d orders completed: %v", statuses[durable.StatusCompleted], r.orders+m.forked, slices.Sorted(maps.Keys(statuses))))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d checks failed: %q", len(wrong), wrong[:min(5, len(wrong))])
	}
	return nil
}
