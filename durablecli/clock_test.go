package durablecli

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

// The command and its doctor compare the times of the database with its clock: the clock of the operator's machine may be wrong.
func TestTheClockOfThisMachineMayBeWrong(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "clock.db"))
	if err != nil {
		t.Fatal(err)
	}
	none := durable.Define("none", func(*durable.Ctx, int) (int, error) { return 0, nil })
	e, err := durable.New(store, durable.Config{Workflows: []durable.Definition{none}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, store.Close()); err != nil {
			t.Error(err)
		}
	})
	for workers := []durable.WorkerInfo(nil); len(workers) == 0; runtime.Gosched() {
		if workers, err = e.Workers(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		for _, name := range []string{"doctor", "workers"} {
			cmd := newRootCommand(&globalFlags{givenEngine: e, clock: func() time.Time { return time.Now().Add(ahead) }})
			var out strings.Builder
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs([]string{name})
			if err := cmd.ExecuteContext(t.Context()); err != nil || strings.Contains(out.String(), "no worker lives") || strings.Contains(out.String(), "dead workers") || strings.Contains(out.String(), "1h") {
				t.Errorf("%s with a clock that is %v ahead: %v\n%s", name, ahead, err, out.String())
			}
		}
	}
}
