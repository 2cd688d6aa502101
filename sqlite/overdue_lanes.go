package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"encoding/json/v2"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// OverdueClaimLanes implements store.Store.
func (s *database) OverdueClaimLanes(ctx context.Context, at time.Time, after store.ClaimLane, limit int) ([]store.OverdueLane, error) {
	var all []store.OverdueLane
	err := s.withReadConn(ctx, "overdue", func(x executor) error {
		for len(all) < limit {
			l, ok, err := nextLane(x, after)
			if err != nil || !ok {
				return err
			}
			if after = l.lane; !after.Claimable() || l.earliestWake.After(at) {
				continue
			}
			err = x.query(qLaneLongestDueRun, func(v []driver.Value) error {
				c := columnReader{values: v}
				all = append(all, store.OverdueLane{QueueWorkflow: store.QueueWorkflow{Queue: l.queue, Workflow: l.workflow}, Lane: l.lane, Run: c.uuid(), Since: c.time()})
				return c.err
			}, int64(l.lane), bindTime(at))
			if err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	return all, err
}

// HaveLiveWorkers implements store.Store.
func (s *database) HaveLiveWorkers(ctx context.Context, pairs []store.QueueWorkflow) ([]bool, error) {
	executed := make([]bool, len(pairs))
	if len(pairs) == 0 {
		return executed, nil
	}
	err := s.withReadConn(ctx, "executed", func(x executor) error {
		return x.query(qLiveWorkersWorkflowsAndQueues, func(v []driver.Value) error {
			c := columnReader{values: v}
			var workflows, queues []string
			err := cmp.Or(decodeTexts(c.text(), &workflows), decodeTexts(c.text(), &queues), c.err)
			for i, p := range pairs {
				executed[i] = executed[i] || (workflows == nil || slices.Contains(workflows, p.Workflow)) && (queues == nil || slices.Contains(queues, p.Queue))
			}
			return err
		}, bindTime(now()))
	})
	return executed, err
}

// encodeTexts encodes texts for the database, and nil as NULL.
func encodeTexts(list []string) (driver.Value, error) {
	if list == nil {
		return nil, nil
	}
	b, err := json.Marshal(list)
	return string(b), err
}

// decodeTexts decodes what encodeTexts has encoded. The text of NULL is empty.
func decodeTexts(column string, list *[]string) error {
	if column == "" {
		return nil
	}
	return json.Unmarshal([]byte(column), list)
}
