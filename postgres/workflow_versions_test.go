package postgres

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// lockedLog returns on a channel when a line with the text is logged.
type lockedLog struct {
	text string
	once sync.Once
	seen chan string
}

func (l *lockedLog) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(l.text)) {
		l.once.Do(func() { l.seen <- string(line) })
	}
	return len(line), nil
}

// Workers that start at once record their version in the same row, whose lock lasts as long as the commit of the first. The others
// wait for it: Run does not stop, and the health check says that the worker has not begun.
func TestALockedVersionDelaysTheStartOfAWorker(t *testing.T) {
	s := open(t, "cache_statement")
	log := &lockedLog{text: "could not be registered", seen: make(chan string, 1)}
	w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 1, nil })
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}, Version: "v1", Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	report := &store.WorkerVersionReport{Version: "v1", Now: now(t, s), Workflows: []string{"w"}, FirstSeen: make([]time.Time, 1)}
	if _, err := s.RecordWorkerVersion(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	tx, err := s.userPool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if tag, err := tx.Exec(t.Context(), "SELECT FROM durable.version WHERE version = 'v1' FOR UPDATE"); err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	select {
	case line := <-log.seen:
		if !strings.Contains(line, store.ErrLocked.Error()) {
			t.Errorf("the worker waits for another reason: %s", line)
		}
	case err := <-ended:
		t.Fatalf("Run has stopped: %v", err)
	}
	if err := durable.Health(e).Ready(ctx); !errors.Is(err, durable.ErrNotReady) || !strings.Contains(err.Error(), "has not begun yet") {
		t.Errorf("before the worker is registered, Ready returns %v", err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Call(ctx, e, 0); err != nil || got != 1 {
		t.Errorf("once it is registered: %d, %v", got, err)
	}
	if err := durable.Health(e).Ready(ctx); err != nil {
		t.Errorf("once it is registered, Ready returns %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run returns %v", err)
	}
}
