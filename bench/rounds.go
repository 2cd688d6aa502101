package main

import (
	"fmt"
	"slices"

	"github.com/seed8ec063be/durable/bench/result"
)

// rounds is the default mode: for each number of callers it measures the paths in turns.
func (b *bench) rounds(at *site) error {
	for _, callers := range b.callers {
		rows, err := b.compare(at, callers, b.paths)
		if err != nil {
			return err
		}
		for _, r := range rows {
			b.add(r)
		}
	}
	return nil
}

// compare measures the paths in turns, and returns a row for each path.
func (b *bench) compare(at *site, callers int, wanted []string) ([]*result.Row, error) {
	opening, err := b.opening(at)
	if err != nil {
		return nil, err
	}
	samples := make(map[string][]*sample)
	for range b.options.rounds {
		for _, path := range paths {
			if !slices.Contains(wanted, path) {
				continue
			}
			if err := at.settle(b.ctx); err != nil {
				return nil, err
			}
			if err := b.pause(b.loadPause()); err != nil {
				return nil, err
			}
			s, err := b.path(at, path, callers, opening)
			if err != nil {
				return nil, fmt.Errorf("path %s, %d callers: %w", path, callers, err)
			}
			samples[path] = append(samples[path], s)
		}
	}
	var rows []*result.Row
	for _, path := range paths {
		if len(samples[path]) > 0 {
			rows = append(rows, row(at.store, path, callers, samples))
		}
	}
	return rows, nil
}

func (b *bench) path(at *site, path string, callers int, opening int64) (*sample, error) {
	switch path {
	case pathCeiling:
		return b.ceiling(at, callers)
	case pathNaive:
		return b.naive(at, callers)
	case pathLocal:
		return b.local(at, callers, opening)
	default:
		return b.claimed(at, callers, opening)
	}
}

// row returns the medians of a path's samples, and their ratios to the other paths.
func row(store, path string, callers int, samples map[string][]*sample) *result.Row {
	of := func(path, name string, get func(*sample) result.Number) result.Figure {
		f := result.Figure{Name: name}
		var values []result.Number
		for _, s := range samples[path] {
			values = append(values, get(s))
			if get(s).Known() {
				f.Each = append(f.Each, float64(get(s)))
			}
		}
		f.Value = median(values)
		return f
	}
	steps := func(s *sample) result.Number { return s.steps }
	mine := of(path, "steps_per_s", steps)
	ratio := func(name, other string) result.Figure {
		f := result.Figure{Name: name, Value: result.Unknown}
		if theirs := of(other, "", steps).Value; theirs > 0 {
			f.Value = mine.Value / theirs
		}
		return f
	}
	return &result.Row{
		Mode: result.Default, Store: store, Path: path, C: callers,
		Figures: []result.Figure{
			of(path, "wf_per_s", func(s *sample) result.Number { return s.workflows }),
			mine,
			ratio("ceiling_ratio", pathCeiling),
			of(path, "p50_ms", func(s *sample) result.Number { return s.p50 }),
			of(path, "p99_ms", func(s *sample) result.Number { return s.p99 }),
			of(path, "xacts_per_wf", func(s *sample) result.Number { return s.xacts }),
			of(path, "bytes_per_step", func(s *sample) result.Number { return s.bytes }),
		},
		More: []result.Figure{
			ratio("naive_ratio", pathNaive),
			ratio("local_ratio", pathLocal),
			of(path, "batch", func(s *sample) result.Number { return s.batch }),
			of(path, "flush_ms", func(s *sample) result.Number { return s.flush }),
		},
	}
}
