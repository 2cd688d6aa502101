package sqlite

import (
	"context"

	"github.com/seed8ec063be/durable/internal/store"
)

// ForkRun implements store.RepairStore.
func (s *database) ForkRun(ctx context.Context, f *store.ForkRequest) error {
	return s.writeAndNotify(ctx, "fork a run", func(x *writeTx) error {
		run := &f.Start.Run
		existing, err := findRunWithSameName(x, run)
		if err == nil {
			err = writeStart(x, f.Start)
		}
		if err != nil || existing != nil { // the existing run may be this one, if the result of an earlier try was lost
			return err
		}
		for i := range f.Steps {
			if i%itemsPerContextCheck == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			p := &f.Steps[i]
			n, err := x.exec(qRepairNewStepInsert, bindShard(run.UUID), bindUUID(run.UUID), run.Epoch.EncodeInt64(), p.Name, int64(p.Kind), int64(p.Status), int64(p.Attempt),
				bindBytes(p.Output), bindBytes(p.Error), bindTime(p.StartedAt), bindTime(p.EndedAt), bindTime(p.NextAt), int64(p.Seq), bindBytes(p.Failures))
			if err := checkOneRow("forking run", run.UUID, n, err); err != nil {
				return err
			}
		}
		return writeEventWithActor(x, &store.ActorAndReason{Actor: f.Actor, Reason: f.Reason, At: run.CreatedAt}, &store.Event{Type: store.EventRepaired, Run: run.UUID, OldValue: f.Source.String()})
	})
}
