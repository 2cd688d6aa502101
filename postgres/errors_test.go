package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed8ec063be/durable/internal/store"
)

func TestKindsOfErrors(t *testing.T) {
	s := open(t, "cache_statement")
	for _, c := range []struct {
		err  error
		want error
	}{
		{&pgconn.PgError{Code: "40001"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "40P01"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "40003"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "08006"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "53100"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "53300"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "55P03"}, store.ErrLocked},
		{&pgconn.PgError{Code: "57014"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "57P01"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "25006"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "23505"}, store.ErrUnavailable},
		{&pgconn.PgError{Code: "22021"}, store.ErrBadData},
		{&pgconn.PgError{Code: "23502"}, store.ErrRejected},
		{&pgconn.PgError{Code: "54000"}, store.ErrRejected},
		{&pgconn.PgError{Code: "53200"}, store.ErrRejected},
		{&pgconn.PgError{Code: "22012"}, store.ErrRejected},
		{&pgconn.PgError{Code: "P0001"}, store.ErrRejected},
		{&pgconn.PgError{Code: "XX001"}, store.ErrRejected},
		{&pgconn.PgError{Code: "42P01"}, store.ErrSchema},
		{&pgconn.PgError{Code: "42703"}, store.ErrSchema},
		{&pgconn.PgError{Code: "42501"}, store.ErrPermission},
		{fmt.Errorf("failed to encode args[0]: no"), store.ErrBadData},
		{errors.New("message body too large"), store.ErrBadData},
		{io.ErrUnexpectedEOF, store.ErrUnavailable},
		{net.ErrClosed, store.ErrUnavailable},
		{context.DeadlineExceeded, store.ErrUnavailable}, // a timeout of pgx itself
	} {
		got := s.wrapError(t.Context(), "do", c.err)
		if !errors.Is(got, c.err) || !errors.Is(got, c.want) {
			t.Errorf("%v lost what is beneath", got)
		}
		for _, kind := range []error{store.ErrUnavailable, store.ErrBadData, store.ErrRejected, store.ErrLocked, store.ErrSchema, store.ErrClosed} {
			if errors.Is(got, kind) != errors.Is(c.want, kind) {
				t.Errorf("%v: want %v", got, c.want)
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Now(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ended: %v", err)
	}
}

func TestClosedStore(t *testing.T) {
	s := open(t, "cache_statement")
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Now(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("the clock of a closed store: %v", err)
	}
	if err := s.Listen(t.Context(), uuid.New(), func(store.WakeHint) {}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("attendance at a closed store: %v", err)
	}
}

// The server's messages depend on lc_messages; an invalid cached plan is recognized in any language.
func TestCachedPlanInGerman(t *testing.T) {
	err := &pgconn.PgError{Code: "0A000", Message: "gecachter Plan darf den Ergebnistyp nicht ändern", Routine: "RevalidateCachedQuery"}
	if !maySucceedOnRetry(err) {
		t.Error("a plan that went with its table fails the step for good where the server does not speak English")
	}
}
