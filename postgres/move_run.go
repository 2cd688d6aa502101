package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// moveRunLockTimeout bounds the wait for the rows of a queue and of a run. Engines retry, so that an open
// transaction that has locked the run delays the admissions of its queue only for a short time.
const moveRunLockTimeout = "100ms"

// MoveRun implements store.QueueMoveStore. It locks the row of the queue and then the run, as an admission does.
func (s *database) MoveRun(ctx context.Context, m *store.MoveRunRequest) error {
	return s.tryTransaction(ctx, "requeue a run", moveRunLockTimeout, func(ask roundTripFunc) error {
		q, found, err := s.readRunToMove(ask, m)
		if err != nil {
			return err
		}
		plan := m.Plan(q, found)
		if plan == nil {
			return nil
		}
		return s.writeQueueMove(ask, m, q, plan)
	})
}

// readRunToMove locks and reads the run, and the row of its queue with the run's key. The results q and found are nil if there is no
// such row.
func (s *database) readRunToMove(ask roundTripFunc, m *store.MoveRunRequest) (q *store.QueueState, found *store.RunToMove, err error) {
	run := []any{store.ShardOf(m.Run), pgUUID(m.Run)}
	queue := ""
	err = ask("find a run", func(batch *pgx.Batch) { batch.Queue(s.statements.queueMoveRunQueueRead, run...) }, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&queue) })
	})
	if err != nil || queue == "" {
		return nil, nil, err
	}
	err = ask("lock a run and its queue", func(batch *pgx.Batch) {
		batch.Queue(s.statements.queueMoveQueueLock, queue)
		batch.Queue(s.statements.queueMoveRunLock, run...)
		batch.Queue(s.statements.queueMoveRunRead, run...)
		batch.Queue(s.statements.queueMoveGroupKeyRead, append(run, queue)...)
	}, func(res statementResults) error {
		err := eachRow(res, func(rows pgx.Rows) error {
			q = newQueueState(&store.AdmissionRequest{Queue: queue, Now: m.Now})
			row := queueRowScanner{state: q}
			err := rows.Scan(row.scanTargets()...)
			if err == nil {
				err = row.decodeState()
			}
			return err
		})
		if err == nil {
			err = eachRow(res, func(pgx.Rows) error { return nil })
		}
		if err == nil {
			err = eachRow(res, func(rows pgx.Rows) (err error) {
				found, err = scanRunToMove(rows)
				return err
			})
		}
		if err == nil {
			err = eachRow(res, func(rows pgx.Rows) error {
				k, err := scanQueueKey(rows)
				if q != nil {
					q.Keys = map[string]*store.QueueKeyState{k.Key: k}
				}
				return err
			})
		}
		return err
	})
	if err == nil && found != nil && found.Name != queue {
		err = fmt.Errorf("postgres: run %s: %w: it was moved from queue %q just now", m.Run, store.ErrLocked, shortenName(queue))
	}
	return q, found, err
}

func scanRunToMove(rows pgx.Rows) (*store.RunToMove, error) {
	f := new(store.RunToMove)
	var lane int64
	var seen admissionRunRow
	err := rows.Scan(append(seen.scanTargets(&f.AdmissionRun), &f.Name, &f.Workflow, (*epochValue)(&f.Epoch), &lane, &f.RowPriority, &f.Version)...)
	seen.fillRun(&f.AdmissionRun)
	f.Queue, f.Lane = f.Name, store.ClaimLane(lane)
	return f, err
}

// writeQueueMove writes what the plan has decided.
func (s *database) writeQueueMove(ask roundTripFunc, m *store.MoveRunRequest, q *store.QueueState, plan *store.QueueMovePlan) error {
	r := &plan.Run
	n := len(plan.Events)
	return ask("requeue a run", func(batch *pgx.Batch) {
		batch.Queue(s.statements.queueMoveRunUpdate, store.ShardOf(m.Run), pgUUID(m.Run), r.Name, r.RowPriority, int64(r.Lane), pgTime(r.WakeAt), pgTime(m.Now),
			int16(m.FoundRun.Status), int16(m.FoundRun.Control), textOrNull(&m.Actor), textOrNull(&m.Reason),
			int2Array{n, func(i int) int16 { return int16(plan.Events[i].Type) }},
			textArray{n, func(i int) *string { return &plan.Events[i].OldValue }}, textArray{n, func(i int) *string { return &plan.Events[i].NewValue }})
		if plan.HasPlace {
			batch.Queue(s.statements.queueMovePlaceWrite, store.ShardOf(m.Run), pgUUID(m.Run), r.Name, r.Key, r.Weight, r.Priority, int16(r.State), r.Root, r.HasBegun, r.Turn,
				pgTime(r.ArrivedAt), pgTime(r.StartBy))
		}
		if plan.Key != nil {
			batch.Queue(s.statements.admissionGroupKeyCountsUpsert, queueKeyArgs(q.Name, []store.QueueKeyState{*plan.Key})...)
			batch.Queue(s.statements.admissionQueueCountsUpdate, queueArgs(q)...)
		}
		batch.Queue(s.statements.notify, notifyChannel(s.schema), "")
	}, func(res statementResults) error {
		if err := expectReturnedRows(res, "runs", 1); err != nil {
			return err
		}
		if plan.HasPlace {
			if err := expectReturnedRows(res, "places", 1); err != nil {
				return err
			}
		}
		if plan.Key != nil {
			if err := expectReturnedRows(res, "keys", 1); err != nil {
				return err
			}
			if err := expectChangedRows(res, "queues", 1); err != nil {
				return err
			}
		}
		return readRowCount(res, 1, nil)
	})
}
