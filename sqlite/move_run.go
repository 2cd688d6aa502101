package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// MoveRun implements store.QueueMoveStore. The write lock is the lock of every queue.
func (s *database) MoveRun(ctx context.Context, m *store.MoveRunRequest) error {
	return s.writeAndNotify(ctx, "requeue a run", func(x *writeTx) error {
		found, err := readRunToMove(x, m.Run)
		if err != nil || found == nil {
			m.Outcome, m.FoundRun = store.Fenced, nil
			return err
		}
		q, exists, err := readQueue(x, &store.AdmissionRequest{Queue: found.Name, Now: m.Now})
		if err != nil {
			return err
		}
		if !exists {
			q = nil
		} else if k, err := readQueueKey(x, q.Name, found.Key); err != nil {
			return err
		} else if k != nil {
			q.Keys = map[string]*store.QueueKeyState{k.Key: k}
		}
		plan := m.Plan(q, found)
		if plan == nil {
			return nil
		}
		return writeQueueMove(x, m, q, plan)
	})
}

func readRunToMove(x executor, run uuid.UUID) (found *store.RunToMove, err error) {
	err = x.query(qQueueMoveRunRead, func(v []driver.Value) error {
		found = new(store.RunToMove)
		c := columnReader{values: v}
		found.AdmissionRun = c.admissionRun()
		found.Name, found.Workflow, found.Epoch, found.Lane, found.RowPriority = c.text(), c.text(), store.DecodeEpoch(c.int()), store.ClaimLane(c.int()), int16(c.int())
		found.Queue, found.Version = found.Name, c.text()
		return c.err
	}, bindShard(run), bindUUID(run))
	return found, err
}

func writeQueueMove(x *writeTx, m *store.MoveRunRequest, q *store.QueueState, plan *store.QueueMovePlan) error {
	r := &plan.Run
	n, err := x.exec(qQueueMoveRunUpdate, r.Name, int64(r.RowPriority), int64(r.Lane), bindTime(r.WakeAt), bindShard(m.Run), bindUUID(m.Run),
		int64(m.FoundRun.Status), int64(m.FoundRun.Control))
	if err := checkOneRow("requeueing run", m.Run, n, err); err != nil {
		return err
	}
	if plan.HasPlace {
		n, err := x.exec(qQueueMovePlaceWrite, bindShard(m.Run), bindUUID(m.Run), r.Name, r.Key, int64(r.Weight), int64(r.Priority), int64(r.State),
			bindBool(r.Root), bindBool(r.HasBegun), r.Turn, bindTime(r.ArrivedAt), bindTime(r.StartBy))
		if err := checkOneRow("writing the place of run", m.Run, n, err); err != nil {
			return err
		}
	}
	if plan.Key != nil {
		if err := writeQueueKey(x, q.Name, plan.Key); err != nil {
			return err
		}
		if err := writeQueueCounts(x, q); err != nil {
			return err
		}
	}
	for _, e := range plan.Events {
		e.Run = m.Run
		if err := writeEventWithActor(x, &store.ActorAndReason{Actor: m.Actor, Reason: m.Reason, At: m.Now}, &e); err != nil {
			return err
		}
	}
	x.addHint(store.HintClaim)
	return nil
}
