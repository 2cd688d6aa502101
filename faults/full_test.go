package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
)

// fullServer is a server whose data are on a file system of their own, small enough to be
// filled. Its log of changes has files in stock: without them a full disk makes the server
// itself stop, which is row 11.
func fullServer(t *testing.T) (*pgtest.Server, string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "full") // short, for the socket in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	mountAt(t, dir, "size=220m")
	server, err := pgtest.Start(t.Context(), pgtest.Options{Dir: dir, Settings: map[string]string{
		"min_wal_size": "96MB", "max_wal_size": "96MB", "shared_buffers": "16MB", "autovacuum": "off",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	conn := session(t, server.URL())
	sql(t, conn, "CREATE TABLE ballast (b bytea)")
	for range 5 { // files that were written once are kept for later
		sql(t, conn, "INSERT INTO ballast VALUES ('x')")
		sql(t, conn, "SELECT pg_switch_wal()")
	}
	sql(t, conn, "CHECKPOINT")
	return server, dir
}

// Row 18: PostgreSQL's disk is full in the middle of the work. A start says so, runs wait,
// what was acknowledged is there, and all goes on when there is room again.
func TestRow18_PostgresDiskFull(t *testing.T) {
	t.Parallel()
	server, dir := fullServer(t)
	db := database{Kind: "postgres", Where: server.URL(), Schema: "durable"}
	l := newLedger(t)
	var refused atomic.Int64
	f := &faulty{Store: db.openIn(t)}
	f.failedCommit = func(err error) {
		if errors.Is(err, durable.ErrUnavailable) {
			refused.Add(1)
		}
	}
	const runs, steps, size = 6, 10, 64 << 10
	w := fat(l, steps, noise(size))
	e := engineOn(t, f, durable.Config{Lease: 2 * time.Second}, w)
	runEngine(t, e)
	await(t, "the worker", func() bool { ws, err := e.Workers(bounded(t)); return err == nil && len(ws) == 1 })
	filler := filepath.Join(dir, "filler")
	room := fill(t, filler, 1<<20)
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
	_, startErr := large.Start(bounded(t), impatient, noise(2<<20), durable.ID("while full"))
	mustFail(t, startErr, durable.ErrUnavailable, "No space left on device", "53100")
	acked := 0
	for _, entry := range l.read(t) {
		if strings.HasPrefix(entry.Step, "ack ") {
			acked++
		}
	}
	recorded := sql(t, session(t, server.URL()), "SELECT count(*) FROM durable.step WHERE status = 3")[0][0].(int64)
	if recorded < int64(acked) || acked == runs*steps {
		t.Errorf("%d steps are recorded, %d of %d were acknowledged", recorded, acked, runs*steps)
	}
	began := time.Now()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for i, run := range handles {
		if v, err := run.Result(bounded(t)); err != nil || v != steps*size {
			t.Errorf("run %d: %d, %v", i, v, err)
		}
	}
	if server.Pid() == 0 {
		t.Error("the server did not survive: ", server.Log())
	}
	executed, repeated := judgeSteady(t, l)
	t.Logf("room_left=%d refused_commits=%d acknowledged_when_full=%d runs=%d executions=%d repeated=%d lost=0 done_after_room=%v: %.200v",
		room, refused.Load(), acked, runs, executed, repeated, time.Since(began).Round(time.Millisecond), startErr)
}

// noise is bytes that do not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	seed := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = seed.Read(b) // it never fails
	return b
}
