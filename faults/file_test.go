package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

func init() {
	// steady runs an engine with long runs until it is ended.
	scenarios["steady"] = func(ctx context.Context, j *job, s durable.Store) error {
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{steady(j.Ledger, 10, 5*time.Millisecond)}, Concurrency: 8, Lease: j.Lease})
		if err != nil {
			return err
		}
		say("working")
		return e.Run(ctx)
	}
}

// Row 34: two processes work in one file; one is killed in the middle, and again.
func TestRow34_TwoProcessesOneFile(t *testing.T) {
	t.Parallel()
	const runs, kills = 60, 3
	db := fresh(t, "sqlite")
	l := newLedger(t)
	w := steady(l, 10, 5*time.Millisecond)
	client := engineOn(t, db.openIn(t), durable.Config{})
	work := func() *process {
		p := spawn(t, job{Scenario: "steady", DB: db, Ledger: l})
		p.expect("working")
		return p
	}
	first, second := work(), work()
	var items []durable.StartItem[int]
	for i := range runs {
		items = append(items, durable.StartItem[int]{ID: fmt.Sprint("r", i), Input: i})
	}
	handles, err := w.StartMany(bounded(t), client, items)
	if err != nil {
		t.Fatal(err)
	}
	for range kills {
		size := len(l.read(t))
		await(t, "progress of the one to be killed", func() bool {
			entries := l.read(t)
			for _, e := range entries[size:] {
				if e.Pid == first.cmd.Process.Pid && len(entries) > size+60 {
					return true
				}
			}
			return false
		})
		first.kill()
		first, second = second, work()
	}
	for i, run := range handles {
		want := 10*i + 45
		if v, err := run.Result(bounded(t)); err != nil || v != want {
			t.Errorf("run %d: %d, %v; want %d", i, v, err, want)
		}
	}
	executed, repeated := judgeSteady(t, l)
	for _, p := range []*process{first, second} {
		p.signal(syscall.SIGTERM)
		p.mustEndWell()
	}
	taken := 0
	for _, run := range handles {
		if info(t, client, run.ID()).Epoch > 1 {
			taken++
		}
	}
	if taken == 0 {
		t.Error("no run was taken over: the kills hit nothing")
	}
	t.Logf("kills=%d runs=%d taken_over=%d executions=%d repeated_before_checkpoint=%d lost=0", kills, runs, taken, executed, repeated)
}

// mount makes a small file system for the length of the test.
func mount(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	mountAt(t, dir, options)
	return dir
}

func mountAt(t *testing.T, dir, options string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("no file system can be mounted here (%v): run as root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fat is a workflow whose every step records the output, so that a disk fills.
func fat(l ledger, steps int, output []byte) *durable.Workflow[int, int] {
	return durable.Define("fat", func(c *durable.Ctx, in int) (int, error) {
		sum := 0
		for i := range steps {
			name := fmt.Sprint("s", i)
			v, err := c.Step(name, func(ctx context.Context) ([]byte, error) {
				l.did(ctx, c.ID(), name)
				return output, nil
			})
			if err != nil {
				return 0, err
			}
			l.add(Entry{Run: c.ID(), Step: "ack " + name})
			sum += len(v)
		}
		return sum, nil
	})
}

// Rows 18 and 34: the disk is full in the middle of the work. Nothing acknowledged is
// lost, starting says what is wrong, and all goes on when there is room again.
func TestRow34_DiskFull(t *testing.T) {
	t.Parallel()
	dir := mount(t, "size=8m")
	db := database{Kind: "sqlite", Where: filepath.Join(dir, "durable.db")}
	l := newLedger(t)
	var refused atomic.Int64
	f := &faulty{Store: db.openIn(t)}
	f.failedCommit = func(err error) {
		if errors.Is(err, durable.ErrUnavailable) {
			refused.Add(1)
		}
	}
	const runs = 6
	w := fat(l, 10, make([]byte, 16<<10))
	e := engineOn(t, f, durable.Config{Lease: 2 * time.Second}, w)
	runEngine(t, e)
	await(t, "the worker", func() bool { ws, err := e.Workers(bounded(t)); return err == nil && len(ws) == 1 })
	filler := filepath.Join(dir, "filler")
	room := fill(t, filler, 400<<10)
	var items []durable.StartItem[int]
	for i := range runs {
		items = append(items, durable.StartItem[int]{ID: fmt.Sprint("r", i), Input: i})
	}
	handles, err := w.StartMany(bounded(t), e, items)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "a commit that meets the full disk", func() bool { return refused.Load() > 2 })
	impatient := engineOn(t, f, durable.Config{Patience: 100 * time.Millisecond})
	large := durable.Define("large", func(*durable.Ctx, []byte) (int, error) { return 0, nil })
	_, startErr := large.Start(bounded(t), impatient, make([]byte, 2<<20), durable.ID("while full"))
	mustFail(t, startErr, durable.ErrUnavailable, "full")
	full := time.Now()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for i, run := range handles {
		if v, err := run.Result(bounded(t)); err != nil || v != 160<<10 {
			t.Errorf("run %d: %d, %v", i, v, err)
		}
	}
	executed, repeated := judgeSteady(t, l)
	t.Logf("room_left=%d refused_commits=%d runs=%d executions=%d repeated=%d done_after_room=%v: %v",
		room, refused.Load(), runs, executed, repeated, time.Since(full).Round(time.Millisecond), startErr)
}

// fill takes all room of the file system but about the bytes given.
func fill(t *testing.T, path string, leave int64) int64 {
	t.Helper()
	var at syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &at); err != nil {
		t.Fatal(err)
	}
	free := int64(at.Bavail) * at.Bsize
	if err := os.WriteFile(path, make([]byte, max(0, free-leave)), 0o600); err != nil {
		t.Fatal(err)
	}
	return min(free, leave)
}

// Row 34: a file that cannot be written is refused at Open with what to do, and one that
// becomes so while it is open says so too.
func TestRow34_ReadOnly(t *testing.T) {
	t.Parallel()
	dir := mount(t, "size=8m")
	db := database{Kind: "sqlite", Where: filepath.Join(dir, "durable.db")}
	s, err := db.open()
	if err != nil {
		t.Fatal(err)
	}
	w := calm(newLedger(t))
	e := engineOn(t, s, durable.Config{}, w)
	if v, err := w.Call(bounded(t), e, 1, durable.ID("r")); err != nil || v != 4 {
		t.Fatal(v, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// A child of another test, between its fork and its exec, may still hold our files open.
	await(t, "the remount", func() bool {
		err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
		if err != nil && !errors.Is(err, syscall.EBUSY) {
			t.Fatal(err)
		}
		return err == nil
	})
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Fatal("the file system is not read-only:", err)
	}
	s, err = db.open()
	if err == nil {
		s.Close()
		t.Fatal("it was opened")
	}
	var refused *sqlite.OpenError
	if !errors.As(err, &refused) || refused.Fix == "" {
		t.Errorf("%v", err)
	}
	t.Logf("refused: %v", err)
}
