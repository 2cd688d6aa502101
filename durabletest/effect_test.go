package durabletest_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
	"github.com/seed8ec063be/durable/internal/testsize"
	"github.com/seed8ec063be/durable/sqlite"
)

// inbox receives signals until it is told to end.
var inbox = durable.Define("inbox", func(c *durable.Ctx, _ int) ([]string, error) {
	var got []string
	for i := 0; ; i++ {
		text, err := c.Receive[string](fmt.Sprint("note ", i), durable.OnSignal("note"))
		if err != nil || text == "end" {
			return got, err
		}
		got = append(got, text)
	}
})

var archived = durable.Define("archived", func(_ *durable.Ctx, text string) (string, error) { return text, nil })

// caller makes each call that does something outside of its history, and looks at what came of it.
var caller = durable.Define("caller", func(c *durable.Ctx, _ int) (string, error) {
	if _, err := c.Now("now"); err != nil {
		return "", err
	}
	if _, err := c.UUID("uuid"); err != nil {
		return "", err
	}
	child, err := c.StartChild("inbox", inbox, 0)
	if err != nil {
		return "", err
	}
	spare, err := c.StartChild("spare", inbox, 0, durable.Delay(time.Hour))
	if err != nil {
		return "", err
	}
	if err := child.Signal("first", "note", "one"); err != nil {
		return "", err
	}
	if err := c.Signal("second", child.ID(), "note", "two"); err != nil {
		return "", err
	}
	if err := spare.Cancel("not needed"); err != nil {
		return "", err
	}
	if err := c.SetTags("tags", map[string]string{"team.owner": "red"}); err != nil {
		return "", err
	}
	made, err := c.Start("archive", archived, "a")
	if err != nil {
		return "", err
	}
	named, err := c.Start("archive by name", archived, "b", durable.ID("archived-b"))
	if err != nil {
		return "", err
	}
	if err := child.Signal("last", "note", "end"); err != nil {
		return "", err
	}
	got, err := child.Wait()
	if err != nil {
		return "", err
	}
	if _, err := spare.Wait(); !errors.Is(err, durable.ErrCancelled) {
		return "", fmt.Errorf("the spare child: %w", err)
	}
	if err := c.Signal("too late", child.ID(), "note", "three"); !errors.Is(err, durable.ErrState) {
		return "", fmt.Errorf("a signal to a child that has ended: %w", err)
	}
	if err := c.Signal("to nobody", "nobody", "note", ""); !errors.Is(err, durable.ErrNotFound) {
		return "", fmt.Errorf("a signal to nobody: %w", err)
	}
	return strings.Join(append(got, strings.TrimPrefix(made, c.RunID()), named, child.ID()), " "), nil
})

// However often a process dies, each call takes effect once.
func TestCrashEverywhereOfCalls(t *testing.T) {
	t.Parallel()
	durabletest.CrashEverywhere(t, caller, 0, durabletest.Workflows(inbox, archived), durabletest.OnNewStores(func(t testing.TB) durable.Store {
		s, err := sqlite.Open(filepath.Join(t.TempDir(), "durable.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			defer s.Close()
			e, err := durable.New(s, durable.Config{})
			if err != nil {
				t.Fatal(err)
			}
			started, err := e.List(context.Background(), durable.Filter{Workflow: "archived"}, durable.Page{})
			if err != nil || len(started.Runs) != 2 {
				t.Errorf("the run started %d others, want 2 (%v)", len(started.Runs), err)
			}
			sender, err := e.Get(context.Background(), "crash-everywhere")
			if err != nil || sender.Tags["team.owner"] != "red" {
				t.Errorf("the run's tags are %v (%v)", sender.Tags, err)
			}
		})
		return s
	}))
}

func TestCrashEverywhereOfCallsOnPostgreSQL(t *testing.T) {
	t.Parallel()
	texts := testsize.Of([]string{"one", "end"}, []string{"end"}) // each call more is some dozen crashes more
	short := durable.Define("short", func(c *durable.Ctx, _ int) ([]string, error) {
		child, err := c.StartChild("inbox", inbox, 0)
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			if err := child.Signal("send "+text, "note", text); err != nil {
				return nil, err
			}
		}
		if _, err := c.Start("archive", archived, "a"); err != nil {
			return nil, err
		}
		return child.Wait()
	})
	durabletest.CrashEverywhere(t, short, 0, durabletest.Workflows(inbox, archived), durabletest.OnNewStores(emptiedStore(t)))
}

// The signals of a run are received in the order in which it sent them, also when it goes on in another process.
func TestCrashEverywhereKeepsTheOrderOfSignals(t *testing.T) {
	t.Parallel()
	w := durable.Define("sender", func(c *durable.Ctx, _ int) ([]string, error) {
		child, err := c.StartChild("inbox", inbox, 0, durable.Delay(time.Hour))
		if err != nil {
			return nil, err
		}
		for _, text := range []string{"one", "two", "three", "end"} {
			if err := child.Signal("send "+text, "note", text); err != nil {
				return nil, err
			}
		}
		return child.Wait()
	})
	durabletest.CrashEverywhere(t, w, 0, durabletest.Workflows(inbox))
}

// A replay of an export asks for the same calls, and makes none of them again.
func TestReplayOfCalls(t *testing.T) {
	e := durabletest.New(t, caller, inbox, archived)
	run, err := caller.Start(t.Context(), e.Engine, 0, durable.ID("run"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Result(t.Context()); err != nil {
		t.Fatal(err)
	}
	exported, err := e.Export(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	if v := durabletest.Replay(t, caller, exported); v.Diverged || len(v.NotCalled) > 0 {
		t.Error(v, v.NotCalled)
	}
	more := durable.Define("caller", func(c *durable.Ctx, _ int) (string, error) {
		err := c.Signal("new", "nobody", "note", 1)
		if !errors.Is(err, durable.ErrDiverged) {
			t.Errorf("the replay has made the call: %v", err)
		}
		return "", err
	})
	if v := durabletest.Replay(t, more, exported); !v.Diverged || !slices.Contains(v.NewCalls, "new") {
		t.Error(v, v.NewCalls)
	}
}
