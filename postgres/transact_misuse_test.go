package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
)

// errWrote is returned by the function itself.
var errWrote = durable.RegisterError("test.wrote", errors.New("the function has written"))

// If a function misuses its transaction, nothing remains of it except the step's failure.
func TestTxMisuse(t *testing.T) {
	failing := func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT 1/0")
		return err
	}
	for name, c := range map[string]struct {
		fn       func(context.Context, pgx.Tx) (any, error)
		want     error
		payments int
	}{
		"error": {func(ctx context.Context, tx pgx.Tx) (any, error) {
			return nil, errors.Join(errors.New("no"), pay(ctx, tx))
		}, nil, 0},
		"panic":       {func(ctx context.Context, tx pgx.Tx) (any, error) { panic(pay(ctx, tx)) }, durable.ErrPanic, 0},
		"unencodable": {func(ctx context.Context, tx pgx.Tx) (any, error) { return make(chan int), pay(ctx, tx) }, durable.ErrNotEncodable, 0},
		"an error ignored": {func(ctx context.Context, tx pgx.Tx) (any, error) {
			err := pay(ctx, tx)
			_ = failing(ctx, tx) // this is the mistake
			return nil, err
		}, durable.ErrInvalidConfig, 0},
		"its own rollback": {func(ctx context.Context, tx pgx.Tx) (any, error) {
			return nil, errors.Join(pay(ctx, tx), tx.Rollback(ctx))
		}, durable.ErrInvalidConfig, 0},
		"read only": {func(ctx context.Context, tx pgx.Tx) (any, error) {
			_, err := tx.Exec(ctx, "SET TRANSACTION READ ONLY")
			return nil, err
		}, durable.ErrInvalidConfig, 0},
		"a write after read only": {func(ctx context.Context, tx pgx.Tx) (any, error) {
			if _, err := tx.Exec(ctx, "SET TRANSACTION READ ONLY"); err != nil {
				return nil, err
			}
			err := pay(ctx, tx)
			return nil, durable.Permanent(errors.Join(err, errWrote))
		}, errWrote, 0},
		"a commit by a statement": {func(ctx context.Context, tx pgx.Tx) (any, error) {
			_, err := tx.Exec(ctx, "commit")
			return nil, errors.Join(err, pay(ctx, tx))
		}, durable.ErrInvalidConfig, 1},
		"another transaction": {func(ctx context.Context, tx pgx.Tx) (any, error) {
			err := pay(ctx, tx)
			for _, statement := range []string{"rollback", "begin"} {
				_, failed := tx.Exec(ctx, statement)
				err = errors.Join(err, failed)
			}
			return nil, err
		}, durable.ErrInvalidConfig, 0},
		"a chained transaction": {func(ctx context.Context, tx pgx.Tx) (any, error) {
			err := pay(ctx, tx)
			_, failed := tx.Exec(ctx, "rollback and chain")
			return nil, errors.Join(err, failed)
		}, durable.ErrInvalidConfig, 0},
		"its own commit": {func(ctx context.Context, tx pgx.Tx) (any, error) {
			return nil, errors.Join(pay(ctx, tx), tx.Commit(ctx))
		}, durable.ErrInvalidConfig, 1},
		"rows left open": {func(ctx context.Context, tx pgx.Tx) (any, error) {
			err := pay(ctx, tx)
			_, failed := tx.Query(ctx, "SELECT generate_series(1, 100000)")
			return nil, errors.Join(err, failed)
		}, durable.ErrInvalidConfig, 0},
		"timeout": {func(ctx context.Context, tx pgx.Tx) (any, error) {
			err := pay(ctx, tx)
			<-ctx.Done()
			return nil, errors.Join(err, ctx.Err())
		}, durable.ErrTimeout, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := shop(t)
			_, err := execute(t, s, func(ctx *durable.Ctx, _ int) (any, error) {
				return Tx(ctx, "pay", c.fn, durable.AttemptTimeout(time.Second))
			})
			var failed *durable.RunError
			if !errors.As(err, &failed) || (c.want != nil && !errors.Is(err, c.want)) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if n := payments(t, s); n != c.payments {
				t.Errorf("%d payments, want %d", n, c.payments)
			}
		})
	}
}
