package sqlite

import (
	"context"
	"database/sql/driver"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// GrantAndReturnPermits implements store.LimitStore. The write lock of the file is the lock of each limit key.
func (s *database) GrantAndReturnPermits(ctx context.Context, b *store.PermitBatch) error {
	keys := b.AllLimitKeys()
	if len(keys) == 0 {
		return nil
	}
	return s.writeAndNotify(ctx, "grant permits", func(x *writeTx) error {
		lines, err := returnPermitsAndReadLimitKeys(x, b, keys)
		if err != nil {
			return err
		}
		asked, err := readPermitsOfRequests(x, b.Requests)
		if err != nil {
			return err
		}
		for i := range lines {
			if err := ctx.Err(); err != nil {
				return err
			}
			plan := lines[i].Plan(b, asked, "")
			if err := writePermitPlan(x, &lines[i], &plan, b.Now); err != nil {
				return err
			}
		}
		return nil
	})
}

// returnPermitsAndReadLimitKeys gives permits back, and then reads the limit keys.
func returnPermitsAndReadLimitKeys(x executor, b *store.PermitBatch, keys []store.LimitKey) ([]store.LimitKeyState, error) {
	for _, r := range b.Returns {
		if _, err := x.exec(qPermitReturn, bindShard(r.Run), bindUUID(r.Run), r.Step, r.Epoch.EncodeInt64(), int64(r.Attempt), r.Limit, r.Key); err != nil {
			return nil, err
		}
	}
	lines := make([]store.LimitKeyState, len(keys))
	for i, g := range keys {
		l := &lines[i]
		l.LimitKey = g
		err := x.query(qLimitKeyLock, func(v []driver.Value) error {
			c := columnReader{values: v}
			l.Now, l.RateUsedUntil, l.ClosedUntil = c.time(), c.time(), c.time()
			return c.err
		}, g.Limit, g.Key, bindTime(b.Now))
		if err != nil {
			return nil, err
		}
		rows := make(map[string]store.LimitRow)
		err = x.query(qPermitLimitBounds, func(v []driver.Value) (err error) {
			c := columnReader{values: v}
			rows[g.Limit] = store.LimitRow{LimitSettings: scanLimitSettings(&c), IsSetByOperator: c.int() != 0, Declared: c.text(), DeclaredVersion: c.text(), MayReplaceDeclared: c.int() != 0}
			return c.err
		}, g.Limit, b.Version, bindTime(b.WorkerStarted), bindTime(b.Now))
		if err != nil {
			return nil, err
		}
		if d := l.SetBoundsFromRows(rows, b); d != nil {
			if err := declareLimit(x, d); err != nil {
				return nil, err
			}
		}
		see := func(v []driver.Value) error {
			c := columnReader{values: v}
			p := store.PermitWithRun{PermitRow: scanPermit(&c)}
			status := c.int()
			p.RunState = store.RunState{Found: status != 0, Status: store.Status(status), Epoch: store.DecodeEpoch(c.int()), Control: store.ControlBits(c.int())}
			p.LeaseUntil = c.time()
			l.Permits = append(l.Permits, p)
			return c.err
		}
		if err := x.query(qPermitsHeldOrOffered, see, g.Limit, g.Key); err != nil {
			return nil, err
		}
		for _, missed := range []bool{true, false} {
			if err := x.query(qPermitsWaiting, see, g.Limit, g.Key, bindBool(missed), int64(store.MaxPermitsRead)); err != nil {
				return nil, err
			}
		}
	}
	return lines, nil
}

// readPermitsOfRequests reads the permits that the requesting steps have, and the states of their runs.
func readPermitsOfRequests(x executor, asks []*store.PermitRequest) (*store.PermitRequestingSteps, error) {
	asked := &store.PermitRequestingSteps{HeldPermits: make(map[*store.PermitRequest]store.PermitRow), Runs: make(map[uuid.UUID]store.PermitRequestingRun)}
	for _, a := range asks {
		err := x.query(qPermitByStep, func(v []driver.Value) error {
			c := columnReader{values: v}
			asked.HeldPermits[a] = scanPermit(&c)
			return c.err
		}, bindShard(a.Run), bindUUID(a.Run), a.Step)
		if err != nil {
			return nil, err
		}
		if _, known := asked.Runs[a.Run]; known {
			continue
		}
		err = x.query(qPermitRequestingRun, func(v []driver.Value) error {
			c := columnReader{values: v}
			state := store.RunState{Found: true, Status: store.Status(c.int()), Epoch: store.DecodeEpoch(c.int()), Control: store.ControlBits(c.int())}
			asked.Runs[a.Run] = store.PermitRequestingRun{RunState: state, LeaseUntil: c.time()}
			return c.err
		}, bindShard(a.Run), bindUUID(a.Run))
		if err != nil {
			return nil, err
		}
	}
	return asked, nil
}

// writePermitPlan writes what a plan has decided for one limit key.
func writePermitPlan(x *writeTx, l *store.LimitKeyState, plan *store.PermitPlan, now time.Time) error {
	for i := range plan.ToDelete {
		p := &plan.ToDelete[i]
		if _, err := x.exec(qPermitDelete, bindShard(p.Run), bindUUID(p.Run), p.Step, p.Limit, p.Key); err != nil {
			return err
		}
	}
	for i := range plan.ToWrite {
		if err := writePermit(x, &plan.ToWrite[i]); err != nil {
			return err
		}
	}
	for i := range plan.ToOffer {
		p := &plan.ToOffer[i]
		if err := writePermit(x, p); err != nil {
			return err
		}
		if err := wakeRun(x, p.Run, now); err != nil {
			return err
		}
	}
	n, err := x.exec(qLimitKeyRecordGrant, bindTime(plan.RateUsedUntil), bindTime(plan.ClosedUntil), l.Limit, l.Key)
	return checkOneRow("a line of limit "+l.Limit+" for", uuid.Nil, n, err)
}

func writePermit(x executor, p *store.PermitRow) error {
	n, err := x.exec(qPermitUpsert, bindShard(p.Run), bindUUID(p.Run), p.Step, p.Limit, p.Key, int64(p.Status), p.Epoch.EncodeInt64(), int64(p.Attempt),
		int64(p.Units), int64(p.Priority), bindBool(p.MissedOffer), bindTime(p.ArrivedAt), bindTime(p.GrantedAt), bindTime(p.OfferedUntil))
	return checkOneRow("a permit for run", p.Run, n, err)
}

func scanPermit(c *columnReader) store.PermitRow {
	return store.PermitRow{
		Limit: c.text(), Key: c.text(), Run: c.uuid(), Step: c.text(), Status: store.PermitStatus(c.int()), Epoch: store.DecodeEpoch(c.int()),
		Attempt: int32(c.int()), Units: int(c.int()), Priority: int16(c.int()), MissedOffer: c.int() != 0,
		ArrivedAt: c.time(), GrantedAt: c.time(), OfferedUntil: c.time(),
	}
}

func scanLimitSettings(c *columnReader) store.LimitSettings {
	return store.LimitSettings{
		Concurrent: int(c.int()), Rate: int(c.int()), Period: time.Duration(c.int()) * time.Microsecond, Burst: int(min(c.int(), math.MaxInt32)),
	}
}

// LimitKeysWithWaiters implements store.LimitStore.
func (s *database) LimitKeysWithWaiters(ctx context.Context, after store.LimitKey, limit int) (lines []store.LimitKey, err error) {
	err = s.withReadConn(ctx, "read lines", func(x executor) error {
		lines = nil // discard the rows of a failed try
		for len(lines) < limit {
			found := false
			err := x.query(qLimitKeyNextWithWaiters, func(v []driver.Value) error {
				c := columnReader{values: v}
				after, found = store.LimitKey{Limit: c.text(), Key: c.text()}, true
				return c.err
			}, after.Limit, after.Key)
			if err != nil || !found {
				return err
			}
			lines = append(lines, after)
		}
		return nil
	})
	return lines, err
}

// DeleteUnusedLimitKeys implements store.LimitStore.
func (s *database) DeleteUnusedLimitKeys(ctx context.Context, q store.DeleteUnusedLimitKeysRequest) (lines store.DeleteUnusedLimitKeysResult, err error) {
	err = s.withReadConn(ctx, "read lines", func(x executor) error {
		lines = store.DeleteUnusedLimitKeysResult{} // discard the rows of a failed try
		return x.query(qLimitKeysPage, func(v []driver.Value) error {
			c := columnReader{values: v}
			lines.Next = store.LimitKey{Limit: c.text(), Key: c.text()}
			return c.err
		}, q.After.Limit, q.After.Key, int64(q.Limit))
	})
	if err != nil || lines.Next == (store.LimitKey{}) {
		return lines, err
	}
	err = s.withWriteTx(ctx, "delete unused lines", func(x executor) error {
		n, err := x.exec(qLimitKeysDeleteUnused, q.After.Limit, q.After.Key, lines.Next.Limit, lines.Next.Key, bindTime(q.UsedBefore), bindTime(q.Now), bindTime(q.Now))
		lines.Deleted = int(n)
		return err
	})
	return lines, err
}

// PermitsOfRun implements store.LimitStore.
func (s *database) PermitsOfRun(ctx context.Context, run uuid.UUID) (permits []store.QueuedPermit, err error) {
	err = s.withReadConn(ctx, "read permits", func(x executor) error {
		permits = nil // discard the rows of a failed try
		return x.query(qPermitsOfRun, func(v []driver.Value) error {
			c := columnReader{values: v}
			p := store.QueuedPermit{PermitRow: scanPermit(&c)}
			p.StepsAhead = int(c.int())
			permits = append(permits, p)
			return c.err
		}, bindShard(run), bindUUID(run))
	})
	return permits, err
}
