package sqlite

import (
	"context"

	"github.com/seed8ec063be/durable/internal/store"
)

// SetDeadline implements store.Store.
func (s *Store) SetDeadline(ctx context.Context, d *store.Deadline) error {
	return s.change(ctx, "set a deadline", func(x *writing) (err error) {
		d.Outcome, d.State = store.Written, store.RunState{}
		status, err := statusOf(x, qDeadline, micros(d.At), micros(d.Now), shardOf(d.Run), key(d.Run))
		switch {
		case err != nil:
			return err
		case status == 0:
			d.Outcome = store.Fenced
			d.State, err = runState(x, d.Run)
			return err
		case status == store.Running:
			x.tell(store.HintNotification)
		case status == store.Waiting, status == store.Pending:
			x.tell(store.HintClaim)
		}
		return nil
	})
}
