package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// If another process keeps the file locked, the error of a write that ends at its deadline names the file and the fix, also if the write
// waits for the connection that another write of this store uses meanwhile. So does the error after BusyTimeout.
func TestAWriteThatWaitsForALockedFileSaysSo(t *testing.T) {
	s := openTest(t, BusyTimeout(300*time.Millisecond))
	other, err := sql.Open("sqlite", "file:"+s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	var writes sync.WaitGroup
	for range 3 {
		writes.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := s.RenewLeases(ctx, store.Heartbeat{Worker: store.Worker{ID: store.NewUUID(0)}, LeaseUntil: time.Now()})
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another connection has locked the file") || !strings.Contains(err.Error(), s.path) || !strings.Contains(err.Error(), lockedFix) {
				t.Errorf("until the deadline: %v", err)
			}
		})
	}
	writes.Wait()
	_, err = s.RenewLeases(t.Context(), store.Heartbeat{Worker: store.Worker{ID: store.NewUUID(0)}, LeaseUntil: time.Now()})
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "another connection has locked the file") || !strings.Contains(err.Error(), lockedFix) {
		t.Errorf("until BusyTimeout: %v", err)
	}
	if _, err := other.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if _, err = s.RenewLeases(t.Context(), store.Heartbeat{Worker: store.Worker{ID: store.NewUUID(0)}, LeaseUntil: time.Now()}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// If a transaction of this process keeps the writing connection, the error of a write that ends at its deadline says that.
func TestAWriteThatWaitsForATransactionOfThisProcessSaysSo(t *testing.T) {
	s := openTest(t)
	tx, err := s.writer().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = s.RenewLeases(ctx, store.Heartbeat{Worker: store.Worker{ID: store.NewUUID(0)}, LeaseUntil: time.Now()})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "transaction of this process") {
		t.Errorf("got %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}
