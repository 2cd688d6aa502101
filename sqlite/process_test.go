package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/leaktest"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// helperEnv makes the test binary another process that uses the file: what it is
// to do, a space, and the path.
const helperEnv = "DURABLE_SQLITE_HELPER"

func TestMain(m *testing.M) {
	if task, path, ok := strings.Cut(os.Getenv(helperEnv), " "); ok {
		if err := help(task, path); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(leaktest.Main(pgtest.InMemory(m.Run)))
}

// help is the other process. It prints a line for each thing done.
func help(task, path string) error {
	ctx := context.Background()
	s, err := openDatabase(path)
	if err != nil {
		return err
	}
	defer s.Close()
	out := bufio.NewWriter(os.Stdout)
	switch task {
	case "open":
	case "write": // commits without end; a name is printed once its commit is acknowledged
		for i := 0; ; i++ {
			batch := &store.Batch{}
			for j := range 5 {
				w := newStart(fmt.Sprintf("%d-%d-%d", os.Getpid(), i, j))
				step := newStep(w.Run.UUID, "only")
				batch.Starts, batch.Steps = append(batch.Starts, w), append(batch.Steps, step)
			}
			if err := s.Commit(ctx, batch); err != nil {
				return err
			}
			for i, w := range batch.Starts {
				if w.Outcome != store.Written || batch.Steps[i].Outcome != store.Written {
					return fmt.Errorf("outcomes %d and %d", w.Outcome, batch.Steps[i].Outcome)
				}
				fmt.Fprintln(out, w.Run.Name)
			}
			if err := out.Flush(); err != nil {
				return err
			}
		}
	case "attend":
		id := uuid.New()
		if _, err := s.RenewLeases(ctx, store.Heartbeat{Worker: store.Worker{ID: id}}); err != nil {
			return err
		}
		return s.Listen(ctx, id, func(store.WakeHint) {
			fmt.Println(id)
		})
	case "create":
		w := newPending("from there")
		return s.Commit(ctx, &store.Batch{Starts: []*store.StartWrite{w}})
	}
	return nil
}

// process is a helper under way. Its lines end when it does.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startHelper(t *testing.T, task, path string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+task+" "+path)
	cmd.Stderr = os.Stderr
	r, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &process{cmd, bufio.NewScanner(r)}
}

// killAfter reads n lines, kills the process, and returns all that it had printed.
func (p *process) killAfter(n int) (lines []string) {
	for p.lines.Scan() {
		lines = append(lines, p.lines.Text())
		if len(lines) == n {
			_ = p.cmd.Process.Kill()
		}
	}
	_ = p.cmd.Wait()
	return lines
}

// Two processes commit to one file, as a third does; both are killed in the middle.
// Every commit that was acknowledged is there, and nothing is there by half.
func TestKilledProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "durable.db")
	s := openAt(t, path)
	var all sync.WaitGroup
	acknowledged := make([][]string, 2)
	for i := range acknowledged {
		p := startHelper(t, "write", path)
		all.Go(func() { acknowledged[i] = p.killAfter(500) })
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	own := 0
	for busy := true; busy; own++ {
		s.mustCommit(t, newStart(""))
		select {
		case <-ended:
			busy = false
		default:
		}
	}
	again := openAt(t, path)
	for _, names := range acknowledged {
		if len(names) < 500 {
			t.Fatal("a writer ended early:", names)
		}
		refs := make([]store.RunRef, len(names))
		for i, name := range names {
			refs[i] = store.RunRef{UUIDOrName: name}
		}
		runs, err := again.GetRuns(t.Context(), refs)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range runs {
			if r == nil {
				t.Fatal("lost:", names[i])
			}
			if history, err := again.History(t.Context(), r.UUID); err != nil || len(history) != 1 {
				t.Fatal(names[i], history, err)
			}
		}
	}
	var runs, steps int
	if err := again.readerDB.QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM durable_run), (SELECT count(*) FROM durable_step)").Scan(&runs, &steps); err != nil {
		t.Fatal(err)
	}
	if runs-own != steps || steps%5 != 0 {
		t.Fatalf("%d runs, %d of them own, and %d steps", runs, own, steps)
	}
	var check string
	if err := again.readerDB.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&check); err != nil || check != "ok" {
		t.Fatal(check, err)
	}
	t.Logf("%d and %d acknowledged before the kill, %d own commits beside them", len(acknowledged[0]), len(acknowledged[1]), own)
}

// Eight processes create one file; one of them is killed at some point of it.
func TestProcessesCreateOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "durable.db")
	var all sync.WaitGroup
	for i := range 8 {
		p := startHelper(t, "open", path)
		all.Go(func() {
			if i == 0 {
				_ = p.cmd.Process.Kill()
			}
			for p.lines.Scan() {
				t.Error(p.lines.Text())
			}
			if err := p.cmd.Wait(); err != nil && i > 0 {
				t.Error(err)
			}
		})
	}
	all.Wait()
	openAt(t, path, WithoutMigrations()).mustCommit(t, newStart("x"))
}

// A worker that is killed is seen to be dead at once, and one that lives sees
// another process's commit.
func TestKilledWorkerIsDead(t *testing.T) {
	s := openTest(t)
	p := startHelper(t, "attend", s.path)
	if !p.lines.Scan() {
		t.Fatal("the worker did not come up")
	}
	worker := uuid.MustParse(p.lines.Text())
	if _, err := os.Stat(s.workerLocks.lockFilePath(worker)); err != nil {
		t.Skip("this system cannot tell:", err)
	}
	if peers, err := s.DeadWorkers(t.Context(), uuid.Nil, nil); err != nil || len(peers.Dead) > 0 {
		t.Fatal(peers.Dead, err)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	if peers, err := s.DeadWorkers(t.Context(), uuid.Nil, nil); err != nil || len(peers.Dead) != 1 || peers.Dead[0] != worker {
		t.Fatal(peers.Dead, err)
	}
	hints, _ := attend(t, s, uuid.New(), store.HintClaim)
	creator := startHelper(t, "create", s.path)
	await(t, hints)
	for creator.lines.Scan() {
		t.Error(creator.lines.Text())
	}
	if err := creator.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if claims := claimAt(t, s, now()); len(claims.Runs) != 1 || claims.Runs[0].Run.Name != "from there" {
		t.Fatal(claims)
	}
}

func TestReadOnlyFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "durable.db")
	openAt(t, path).mustCommit(t, newStart("x"))
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	err := openUnprivileged(t, path)
	var typed *OpenError
	if err != nil && !errors.As(err, &typed) {
		// The helper process can only hand over the text.
		if !strings.Contains(err.Error(), "write permission") || !strings.Contains(err.Error(), path) {
			t.Fatal(err)
		}
	} else if typed == nil {
		t.Fatal("it was opened")
	}
	t.Log(err)
}
