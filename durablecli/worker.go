package durablecli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
)

func workerCommand(f *globalFlags) []*cobra.Command {
	show := func(ctx context.Context, s *session, name string) error {
		workers, err := s.engine.Workers(ctx)
		if err != nil {
			return err
		}
		id, err := workerID(workers, name)
		if err != nil {
			return err
		}
		return showNamed(s.printer, workers, nil, id, func(w *durable.WorkerInfo) string { return w.ID }, workerColumns(s.printer))
	}
	// onWorker calls the method with the ID of the worker that has the name.
	onWorker := func(call namedAction) namedAction {
		return func(ctx context.Context, e *durable.Engine, name string, opts ...durable.ControlOption) error {
			workers, err := e.Workers(ctx)
			if err != nil {
				return err
			}
			id, err := workerID(workers, name)
			if err != nil {
				return err
			}
			return call(ctx, e, id, opts...)
		}
	}
	return []*cobra.Command{nounCommand(f, "worker", "Make a worker quiet, or resume it",
		f.namedCommand("quiet", "Let the worker take no further runs; it continues those it has", onWorker(func(ctx context.Context, e *durable.Engine, id string, opts ...durable.ControlOption) error {
			return e.QuietWorker(ctx, id, opts...)
		}), show),
		f.namedCommand("resume", "Let a quiet worker take runs again", onWorker(func(ctx context.Context, e *durable.Engine, id string, opts ...durable.ControlOption) error {
			return e.ResumeWorker(ctx, id, opts...)
		}), show),
	)}
}

// workerID returns the ID of the worker with the given ID or name. If no worker has it, workerID returns the text unchanged, so
// that the engine refuses it.
func workerID(workers []durable.WorkerInfo, name string) (string, error) {
	var ids []string
	for i := range workers {
		switch w := &workers[i]; name {
		case w.ID:
			return name, nil
		case w.Name:
			ids = append(ids, w.ID)
		}
	}
	switch len(ids) {
	case 0:
		return name, nil
	case 1:
		return ids[0], nil
	}
	return "", newUsageError("%d workers have the name %q: give the ID of one of them: %s", len(ids), name, strings.Join(ids, ", "))
}
