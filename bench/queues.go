package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// The parts of mode queues.
const (
	partClaimed    = "claimed"
	partBacklog    = "backlog"
	partPermits    = "permits"
	partSchedules  = "schedules"
	partRegistered = "registered"
)

var queueParts = []string{partClaimed, partBacklog, partPermits, partSchedules, partRegistered}

// modeQueues is the name of the mode in its rows.
const modeQueues = "queues"

// queues measures flow control: queues with settings, limits on steps, and schedules.
func (b *bench) queues(at *site) error {
	for _, part := range []struct {
		name string
		run  func(*site) error
	}{
		{partClaimed, b.queuesClaimed},
		{partBacklog, b.queuesBacklog},
		{partPermits, b.queuesPermits},
		{partSchedules, b.queuesSchedules},
		{partRegistered, b.queuesRegistered},
	} {
		if !slices.Contains(b.parts, part.name) {
			continue
		}
		own, err := at.site(b.ctx, modeQueues+"_"+part.name)
		if err == nil {
			err = b.makeTables(own)
		}
		if err == nil {
			err = errors.Join(part.run(own), own.remove())
		}
		if err != nil {
			return fmt.Errorf("part %s: %w", part.name, err)
		}
	}
	return nil
}

// queueClient opens a store with an engine that executes nothing. The caller closes it.
func (b *bench) queueClient(at *site, workflows ...durable.Definition) (*worker, error) {
	s, err := at.open(b.ctx)
	if err != nil {
		return nil, err
	}
	e, err := durable.New(s, durable.Config{Workflows: workflows})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &worker{store: s, engine: e}, nil
}

// setQueue gives a queue settings.
func (b *bench) setQueue(at *site, name string, settings durable.QueueSettings) (err error) {
	c, err := b.queueClient(at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.store.Close()) }()
	return c.engine.SetQueue(b.ctx, name, settings)
}

// inTurns calls measure for each path, round after round, and returns the values by path.
func inTurns[T any](b *bench, at *site, paths []string, measure func(path string) (T, error)) (map[string][]T, error) {
	values := make(map[string][]T)
	for round := range b.options.rounds {
		order := slices.Clone(paths)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, path := range order {
			if err := at.settle(b.ctx); err != nil {
				return nil, err
			}
			if err := b.pause(b.loadPause()); err != nil {
				return nil, err
			}
			v, err := measure(path)
			if err != nil {
				return nil, fmt.Errorf("path %s: %w", path, err)
			}
			values[path] = append(values[path], v)
		}
	}
	return values, nil
}

// figure returns the median of what get returns for the values.
func figure[T any](name string, values []T, get func(T) result.Number) result.Figure {
	f := result.Figure{Name: name}
	var all []result.Number
	for _, v := range values {
		n := get(v)
		all = append(all, n)
		if n.Known() {
			f.Each = append(f.Each, float64(n))
		}
	}
	f.Value = median(all)
	return f
}

// ratio returns the median of the ratios of each round.
func ratio[T any](name string, mine, theirs []T, get func(T) result.Number) result.Figure {
	i := -1
	return figure(name, mine, func(v T) result.Number {
		i++
		if get(theirs[i]) == 0 {
			return result.Unknown
		}
		return get(v) / get(theirs[i])
	})
}
