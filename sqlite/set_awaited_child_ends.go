package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/seed8ec063be/durable/internal/store"
)

// SetAwaitedChildEnds implements store.Store.
func (s *database) SetAwaitedChildEnds(ctx context.Context, w *store.SetAwaitedChildEndsRequest) error {
	return s.withWriteTx(ctx, "await ends of children", func(x executor) error {
		w.Outcome, w.CountedEnds = store.Fenced, 0
		return x.query(qChildEndsSetAwaitedCount, func(v []driver.Value) error {
			c := columnReader{values: v}
			w.Outcome, w.CountedEnds = store.Written, int(c.int())
			return c.err
		}, int64(w.EndsToAwait), bindUUID(w.Run), w.Name, bindShard(w.Run), w.Epoch.EncodeInt64())
	})
}

// countChildEnd counts the end of a child in the call that started it, and reports whether the parent waits for more ends. If it
// does, this end does not wake the parent, but the parent becomes claimable within store.MaxParentWakeDelay.
func countChildEnd(x *writeTx, w *store.OwnershipEnd) (waits bool, err error) {
	err = x.query(qChildEndsCount, func(v []driver.Value) error {
		c := columnReader{values: v}
		waits = c.int() != 0
		return c.err
	}, bindUUID(w.ParentToWake.UUID), w.CountingCall)
	if err != nil || !waits {
		return false, err
	}
	_, err = x.exec(qChildEndsScheduleParentCheck, bindTime(ownershipEndTime(w).Add(store.MaxParentWakeDelay)), bindShard(w.ParentToWake.UUID), bindUUID(w.ParentToWake.UUID))
	return true, err
}
