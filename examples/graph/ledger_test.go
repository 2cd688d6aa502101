package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

// A step of a child that was executed again after its checkpoint was committed is seen, and one whose first execution was lost is not.
func TestRerunsOfChildrenAreSeen(t *testing.T) {
	folder := t.TempDir()
	l, err := openLedger(filepath.Join(folder, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.file.Close()
	if err := os.WriteFile(filepath.Join(folder, "a.go"), []byte("package a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(filepath.Join(folder, "durable.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	w := define(l)
	engine, err := durable.New(store, durable.Config{Workflows: w.all()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- engine.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	if _, err := w.index.Call(ctx, engine, Source{filepath.Dir(l.file.Name()), 1}, durable.ID(runID)); err != nil {
		t.Fatal(err)
	}
	all, err := readLedger(l.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	child := all[slices.IndexFunc(all, func(x execution) bool { return x.step == "read" })]
	if n := countSteps(all); child.run == runID || n != 7 {
		t.Fatalf("%d steps were executed, one of them %+v: %+v", n, child, all)
	}
	lost := child
	lost.at = lost.at.Add(-time.Second)
	if again, err := reruns(ctx, engine, append(all, lost)); len(again) != 0 || err != nil {
		t.Errorf("%q, %v", again, err)
	}
	child.at = child.at.Add(time.Second)
	if again, err := reruns(ctx, engine, append(all, child)); !slices.Equal(again, []string{child.run + " read"}) || err != nil {
		t.Errorf("%q, %v", again, err)
	}
}
