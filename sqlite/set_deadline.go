package sqlite

import (
	"context"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// SetDeadline implements store.Store.
func (s *database) SetDeadline(ctx context.Context, d *store.DeadlineChangeRequest) error {
	return s.writeAndNotify(ctx, "set a deadline", func(x *writeTx) (err error) {
		d.Outcome, d.RunState = store.Written, store.RunState{}
		var before time.Time
		if d.ActorAndReason.HasActorOrReason() {
			row, _, err := runByUUID(x, d.Run, store.NoPayloads)
			if err != nil {
				return err
			}
			before = row.Deadline
		}
		status, err := queryStatus(x, qRunDeadlineSet, bindTime(d.NewDeadline), bindTime(d.Now), bindShard(d.Run), bindUUID(d.Run), d.Timeout.Microseconds())
		switch {
		case err != nil:
			return err
		case status == 0:
			d.Outcome = store.Fenced
			d.RunState, err = readRunState(x, d.Run)
			return err
		case status == store.Running:
			x.addHint(store.HintOwnedRunChange)
		case status == store.Waiting, status == store.Pending:
			x.addHint(store.HintClaim)
		}
		if !d.ActorAndReason.HasActorOrReason() || before.Equal(truncateTime(d.NewDeadline)) {
			return nil
		}
		return writeEventWithActor(x, &d.ActorAndReason, &store.Event{Type: store.EventTimeoutSet, Run: d.Run, OldValue: store.TimeText(before), NewValue: store.TimeText(d.NewDeadline)})
	})
}
