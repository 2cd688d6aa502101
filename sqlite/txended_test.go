package sqlite

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// StartTx and SignalTx say that a transaction has ended, or is none, as what it is: not as an outage.
func TestStartTxAfterTheTransaction(t *testing.T) {
	s, err := openDatabase(filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Start(t.Context(), e, 1, durable.ID("live")); err != nil {
		t.Fatal(err)
	}
	over, err := s.Writer().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := over.Rollback(); err != nil {
		t.Fatal(err)
	}
	for name, tx := range map[string]*sql.Tx{"ended": over, "nil": nil} {
		if _, err := StartTx(t.Context(), tx, e, w, 1, durable.ID("x")); !errors.Is(err, durable.ErrInvalidConfig) || errors.Is(err, durable.ErrUnavailable) {
			t.Errorf("StartTx, %s: %v", name, err)
		}
		if err := SignalTx(t.Context(), tx, e, "live", "word", 1, durable.Actor("ann")); !errors.Is(err, durable.ErrInvalidConfig) || !strings.Contains(err.Error(), "record them there") {
			t.Errorf("with an actor: %v", err)
		}
		if err := SignalTx(t.Context(), tx, e, "live", "word", 1); !errors.Is(err, durable.ErrInvalidConfig) || errors.Is(err, durable.ErrUnavailable) {
			t.Errorf("SignalTx, %s: %v", name, err)
		}
	}
}
