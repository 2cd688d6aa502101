package postgres

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Only the transaction of an admission commits without waiting for the disk: the session keeps its setting. A transaction whose last
// round trip commits is over when this round trip ends, and commits nothing if a statement fails.
func TestATransactionCommitsWithItsLastRoundTrip(t *testing.T) {
	everyWay(t, func(t *testing.T, s *database) {
		read := func(ask roundTripFunc, query string) (value string, err error) {
			err = ask("read", func(batch *pgx.Batch) { batch.Queue(query) }, func(res statementResults) error {
				return eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&value) })
			})
			return value, err
		}
		const level = "SELECT current_setting('synchronous_commit')"
		for _, isAsync := range []bool{true, false} {
			want := "on"
			if isAsync {
				want = "off"
			}
			err := s.tryTransactionWithOptions(t.Context(), "look", transactionOptions{lockTimeout: controlLockTimeout, isAsync: isAsync}, func(ask, askLast roundTripFunc) error {
				for _, send := range []roundTripFunc{ask, askLast} {
					if got, err := read(send, level); err != nil || got != want {
						t.Errorf("synchronous_commit is %q in a transaction with isAsync=%v: %v", got, isAsync, err)
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		err := s.tryTransactionWithOptions(t.Context(), "look", transactionOptions{lockTimeout: controlLockTimeout}, func(ask, askLast roundTripFunc) error {
			if _, err := read(ask, "SELECT pg_notify('"+notifyChannel(s.schema)+"', '')::text"); err != nil {
				return err
			}
			_, err := read(askLast, "SELECT (1 / (random() * 0)::integer)::text")
			return err
		})
		if err == nil {
			t.Error("a transaction whose last statement fails is committed")
		}
		stop := errors.New("stop")
		err = s.tryTransactionWithOptions(t.Context(), "look", transactionOptions{lockTimeout: controlLockTimeout}, func(ask, _ roundTripFunc) error {
			if got, err := read(ask, level); err != nil || got != "on" {
				t.Errorf("synchronous_commit is %q after the others: %v", got, err)
			}
			return stop
		})
		if !errors.Is(err, stop) {
			t.Error(err)
		}
	})
}
