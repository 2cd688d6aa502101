package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

// acks are the steps that were acknowledged, and when each was called.
type acks struct {
	mu  sync.Mutex
	all []ack
}

type ack struct {
	step   string
	called time.Time
}

func (a *acks) add(step string, called time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, ack{step, called})
}

func (a *acks) list() []ack {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]ack(nil), a.all...)
}

// busy is a workflow that makes one step after the other.
func busy(a *acks) *durable.Workflow[int, int] {
	return durable.Define("busy", func(c *durable.Ctx, _ int) (int, error) {
		for i := 0; ; i++ {
			name, called := fmt.Sprint("step-", i), time.Now()
			if _, err := c.Step(name, func(context.Context) (int, error) { return i, nil }); err != nil {
				return 0, err
			}
			a.add(name, called)
		}
	})
}

// Row 44: a file of the database is deleted, replaced or moved under the process. Nothing that
// begins afterwards is acknowledged, whoever asks; Run returns an error that names the file and
// the fix; and what was acknowledged before is in the files, where they are still to be had.
func TestRow44_FilesMovedUnderTheProcess(t *testing.T) {
	t.Parallel()
	move := func(from, to string, names ...string) error {
		for _, name := range names {
			if err := os.Rename(from+name, to+name); err != nil {
				return err
			}
		}
		return nil
	}
	replace := func(path string) error {
		if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	}
	for name, c := range map[string]struct {
		do    func(path, away string) error
		which string // the file that the error names
		word  string
		keeps bool // all that counts is still there, in one place
	}{
		"deleted":      {func(path, _ string) error { return os.Remove(path) }, "", "deleted", false},
		"replaced":     {func(path, _ string) error { return replace(path) }, "", "replaced", false},
		"moved":        {func(path, away string) error { return move(path, away, "", "-wal", "-shm") }, "", "moved", true},
		"log deleted":  {func(path, _ string) error { return os.Remove(path + "-wal") }, "-wal", "deleted", false},
		"log replaced": {func(path, _ string) error { return replace(path + "-wal") }, "-wal", "replaced", false},
		"shm deleted":  {func(path, _ string) error { return os.Remove(path + "-shm") }, "-shm", "deleted", true},
		"folder moved": {func(path, away string) error {
			return os.Rename(filepath.Dir(path), filepath.Dir(away))
		}, "", "moved", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "one", "durable.db")
			away := filepath.Join(filepath.Dir(filepath.Dir(path)), "two", "durable.db")
			for _, dir := range []string{filepath.Dir(path), filepath.Dir(away)} {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			s, err := sqlite.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			var a acks
			w := busy(&a)
			e := engineOn(t, s, durable.Config{}, w)
			ran := make(chan error, 1)
			go func() { ran <- e.Run(bounded(t)) }()
			run := start(t, e, w, 0, durable.ID("busy"))
			await(t, "some steps", func() bool { return len(a.list()) > 50 })
			if name == "folder moved" {
				if err := os.Remove(filepath.Dir(away)); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.do(path, away); err != nil {
				t.Fatal(err)
			}
			since := time.Now()

			err = <-ran
			var moved *sqlite.MovedError
			if !errors.As(err, &moved) || !errors.Is(err, durable.ErrMoved) || moved.Path != path+c.which {
				t.Errorf("Run: %v, want that %s was %s", err, path+c.which, c.word)
			} else if text := err.Error(); !strings.Contains(text, c.word) || !strings.Contains(text, "restore a backup") {
				t.Errorf("Run: %v: it does not say what to do", err)
			}
			t.Logf("Run returned %v after it: %v", time.Since(since).Round(time.Millisecond), err)
			list := a.list()
			for _, ack := range list {
				// The shm is an index of the log: what is written without it is in the log all the same.
				if ack.called.After(since) && c.which != "-shm" {
					t.Errorf("%s was acknowledged, which was called %v after it", ack.step, ack.called.Sub(since))
				}
			}
			for what, err := range map[string]error{
				"Start":                       one(w.Start(bounded(t), e, 0, durable.ID("other"))),
				"Signal":                      e.Signal(bounded(t), "busy", "s", 1),
				"Get":                         one(e.Get(bounded(t), "busy")),
				"Pause":                       one(e.Pause(bounded(t), "busy")),
				"Result":                      one(run.Result(bounded(t))),
				"a transaction of the user's": write(bounded(t), s, e, w),
			} {
				if !errors.Is(err, durable.ErrMoved) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error("close:", err)
			}
			if !c.keeps {
				return
			}
			if c.which != "" {
				away = path
			}
			again, err := sqlite.Open(away)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			recorded := history(t, engineOn(t, again, durable.Config{}), "busy")
			for _, ack := range list {
				if recorded[ack.step].Status != "completed" {
					t.Errorf("%s was acknowledged before, and is not in the file", ack.step)
				}
			}
			t.Logf("%d steps were acknowledged before, %d are in the file", len(list), len(recorded))
		})
	}
}

// write starts a run in a transaction of the user's own.
func write(ctx context.Context, s *sqlite.Store, e *durable.Engine, w *durable.Workflow[int, int]) error {
	tx, err := s.Writer().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = sqlite.StartTx(ctx, tx, e, w, 0, durable.ID("in a transaction"))
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func one[T any](_ T, err error) error { return err }
