package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
)

// Source is the input of the graph.
type Source struct {
	Root     string
	Packages int // how many packages are read
}

// Package is a package to read.
type Package struct{ Root, Path string }

// Size is what was read of a package.
type Size struct {
	Path         string
	Files, Lines int
}

// Report is the output of the graph.
type Report struct {
	Packages, Files, Lines int
	Largest                string
}

// workflows are the graph and the workflows of its children.
type workflows struct {
	index *durable.Workflow[Source, Report]
	read  *durable.Workflow[Package, Size]
	slow  *durable.Workflow[[]Size, int]
}

func (w workflows) all() []durable.Definition { return []durable.Definition{w.index, w.read, w.slow} }

// define defines the workflows. Each step first records in the ledger that it was called.
func define(l *ledger) (w workflows) {
	w.read = durable.Define("read", func(c *durable.Ctx, p Package) (Size, error) {
		return c.Step("read", func(ctx context.Context) (Size, error) {
			l.begin(ctx, c.RunID())
			return readPackage(p)
		})
	})
	// An analyst who takes his time. The graph ends him once three others have counted.
	w.slow = durable.Define("slow", func(c *durable.Ctx, sizes []Size) (int, error) {
		if err := c.Sleep("an hour", time.Hour); err != nil {
			return 0, err
		}
		return sumOf(sizes), nil
	})
	w.index = durable.DefineGraph("index", func(g *durable.Graph[Source]) *durable.Node[Report] {
		list := g.Step("list", func(ctx context.Context, in *durable.NodeInput) ([]Package, error) {
			l.begin(ctx, runID)
			return listPackages(g.Input(in))
		})
		read := g.EachChild("read", list, w.read)
		sizes := func(in *durable.NodeInput) ([]Size, error) { return read.Of(in), nil }
		analyse := func(name string, count func([]Size) int) *durable.Node[int] {
			return g.Step(name, func(ctx context.Context, in *durable.NodeInput) (int, error) {
				l.begin(ctx, runID)
				return count(read.Of(in)), nil
			}, durable.Needs(read))
		}
		analysts := []*durable.Node[int]{
			analyse("forwards", sumOf),
			analyse("backwards", func(s []Size) int {
				mine := slices.Clone(s) // the nodes share the value
				slices.Reverse(mine)
				return sumOf(mine)
			}),
			analyse("in halves", func(s []Size) int { return sumOf(s[:len(s)/2]) + sumOf(s[len(s)/2:]) }),
			g.Child("thoroughly", w.slow, sizes, durable.Needs(read)),
			g.Child("twice", w.slow, sizes, durable.Needs(read)),
		}
		warn := g.Step("warn", func(ctx context.Context, _ *durable.NodeInput) (bool, error) { l.begin(ctx, runID); return true, nil },
			durable.When(list, func(p []Package) bool { return len(p) == 0 }))
		var members []durable.AnyNode
		for _, a := range analysts {
			members = append(members, a)
		}
		join := g.Step("join", func(ctx context.Context, in *durable.NodeInput) (lines int, err error) {
			l.begin(ctx, runID)
			for _, a := range analysts {
				if n, err := a.Get(in); err == nil && lines != 0 && n != lines {
					return 0, durable.Permanent(fmt.Errorf("%q counts %d lines, and another %d", a.Name(), n, lines))
				} else if err == nil {
					lines = n
				}
			}
			return lines, nil
		}, durable.NeedsQuorum(3, durable.CancelLosers, members...))
		return g.Step("report", func(ctx context.Context, in *durable.NodeInput) (Report, error) {
			l.begin(ctx, runID)
			return report(read.Of(in), join.Of(in)), nil
		}, durable.Needs(read, join), durable.After(warn))
	})
	return w
}

// listPackages returns the first packages of the source tree that contain Go files, in the order of their paths.
func listPackages(s Source) (all []Package, err error) {
	err = filepath.WalkDir(s.Root, func(name string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "_")):
			return filepath.SkipDir
		case !entry.IsDir() || len(all) == s.Packages:
			return nil
		}
		if files, err := filepath.Glob(filepath.Join(name, "*.go")); err != nil || len(files) == 0 {
			return err
		}
		path, err := filepath.Rel(s.Root, name)
		all = append(all, Package{s.Root, filepath.ToSlash(path)})
		return err
	})
	return all, err
}

// readPackage counts the files and lines of a package.
func readPackage(p Package) (Size, error) {
	files, err := filepath.Glob(filepath.Join(p.Root, filepath.FromSlash(p.Path), "*.go"))
	size := Size{Path: p.Path, Files: len(files)}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return size, err
		}
		size.Lines += bytes.Count(text, []byte("\n"))
	}
	return size, err
}

func sumOf(sizes []Size) (lines int) {
	for _, s := range sizes {
		lines += s.Lines
	}
	return lines
}

func report(sizes []Size, lines int) Report {
	r := Report{Packages: len(sizes), Lines: lines}
	for _, s := range sizes {
		r.Files += s.Files
	}
	largest := slices.MaxFunc(sizes, func(a, b Size) int { return a.Lines - b.Lines })
	r.Largest = largest.Path
	return r
}
