package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/seed8ec063be/durable"
)

// atOnce is the number of steps of the run that are executed at the same time.
const atOnce = 8

// Source is the input of the workflow: the folder to index.
type Source struct{ Root string }

// Package is the result of one step.
type Package struct {
	Path                       string
	Files, Lines, Declarations int
	Bytes                      int64
	Hash                       string // SHA-256 over names and contents
}

// Report is the output of the workflow.
type Report struct {
	Packages, Files, Lines, Declarations int
	Bytes                                int64
	Largest                              []Package // by lines
	Hash                                 string    // SHA-256 over the packages' hashes, in order
}

// define defines the workflow. The function of each step first records in the ledger that it was
// called.
func define(l *ledger) *durable.Workflow[Source, Report] {
	return durable.Define("index", func(c *durable.Ctx, in Source) (Report, error) {
		// The list of packages depends on the file system, so it must be the result of a step.
		paths, err := c.Step("list packages", func(ctx context.Context) ([]string, error) {
			l.begin("list packages")
			return listPackages(in.Root)
		})
		if err != nil {
			return Report{}, err
		}
		// Step names are keys, so plain goroutines may call the steps in any order.
		packages := make([]Package, len(paths))
		g := newGroup(atOnce)
		for i, p := range paths {
			name := "package " + p
			g.run(func() (err error) {
				packages[i], err = c.Step(name, func(ctx context.Context) (Package, error) {
					l.begin(name)
					return indexPackage(in.Root, p)
				})
				return err
			})
		}
		if err := g.wait(); err != nil {
			return Report{}, err
		}
		return c.Step("report", func(ctx context.Context) (Report, error) {
			l.begin("report")
			return summarize(packages), nil
		})
	})
}

// listPackages returns every folder below root that contains Go files, sorted. Like go list, it
// ignores testdata and names that begin with a dot or an underscore.
func listPackages(root string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if base := d.Name(); name != root && (base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
			return fs.SkipDir
		}
		files, err := goFiles(name)
		if err != nil || len(files) == 0 {
			return err
		}
		rel, err := filepath.Rel(root, name)
		paths = append(paths, filepath.ToSlash(rel))
		return err
	})
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("there is no Go package in %s", root)
	}
	return paths, err
}

func goFiles(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder) // sorted
	var names []string
	for _, e := range entries {
		if n := e.Name(); e.Type().IsRegular() && path.Ext(n) == ".go" && n[0] != '.' && n[0] != '_' {
			names = append(names, n)
		}
	}
	return names, err
}

// indexPackage reads, parses, counts and hashes the Go files of one folder.
func indexPackage(root, pkg string) (Package, error) {
	folder := filepath.Join(root, filepath.FromSlash(pkg))
	names, err := goFiles(folder)
	if err != nil {
		return Package{}, err
	}
	p := Package{Path: pkg, Files: len(names)}
	sum := sha256.New()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return Package{}, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return Package{}, fmt.Errorf("parse %s/%s: %w", pkg, name, err)
		}
		p.Bytes += int64(len(text))
		p.Lines += bytes.Count(text, []byte{'\n'})
		p.Declarations += declarations(file)
		fmt.Fprintf(sum, "%s %d\n", name, len(text)) // writing to a hash never fails
		sum.Write(text)
	}
	p.Hash = hex.EncodeToString(sum.Sum(nil))
	return p, nil
}

// declarations counts the functions, methods, types, variables and constants that a file declares
// at the top level.
func declarations(f *ast.File) int {
	n := 0
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			n++
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					n++
				case *ast.ValueSpec:
					n += len(s.Names)
				}
			}
		}
	}
	return n
}
