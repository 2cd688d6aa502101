package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed8ec063be/durable/internal/store"
)

// wrapError wraps an error, and adds the error of package store that tells its kind. If ctx has ended, it wraps the context's error,
// and only its text says what the call was waiting for.
func (s *database) wrapError(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("postgres: %s: %w%s", what, ended, s.failureText(ctx, err))
	}
	if s.isClosed() {
		return fmt.Errorf("postgres: %s: %w", what, store.ErrClosed)
	}
	if hasSQLState(err, "42P05") {
		return fmt.Errorf("postgres: %s: %w: %w: a pooler in transaction mode seems to stand between; add default_query_exec_mode=cache_describe to the URL", what, store.ErrRejected, err)
	}
	if hasSQLState(err, sqlStateTooManyConns) {
		return fmt.Errorf("postgres: %s: %w: %w: the server has no connection left: raise max_connections, or let fewer workers or smaller pools use it", what, store.ErrUnavailable, err)
	}
	if refused := asAccessError(err); refused != nil {
		return fmt.Errorf("postgres: %s: %w: %w", what, store.ErrUnavailable, refused)
	}
	if kind := storeErrorOf(err); kind != nil {
		return fmt.Errorf("postgres: %s: %w: %w", what, kind, err)
	}
	return fmt.Errorf("postgres: %s: %w", what, err)
}

// failureText describes a failed call whose context has ended: the context's cause, the call's own error, and
// why no host is connected.
func (s *database) failureText(ctx context.Context, err error) (text string) {
	if cause := context.Cause(ctx); cause != ctx.Err() { //nolint:errorlint // identity, not errors.Is
		text += ": " + cause.Error()
	}
	if err != ctx.Err() { //nolint:errorlint // identity, not errors.Is
		text += ": " + err.Error()
	}
	if trouble := s.hosts.noHostReason(); trouble != "" {
		text += ": " + trouble
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// storeErrorOf returns the kind, an error of package store, for an error of pgx or the server. It returns nil
// if err already has a kind.
func storeErrorOf(err error) error {
	for _, known := range []error{store.ErrUnavailable, store.ErrBadData, store.ErrRejected, store.ErrLocked, store.ErrSchema, store.ErrClosed} {
		if errors.Is(err, known) {
			return nil // it already has a kind
		}
	}
	var connecting *pgconn.ConnectError
	if errors.As(err, &connecting) {
		return store.ErrUnavailable
	}
	var pg *pgconn.PgError
	switch {
	case !errors.As(err, &pg):
	case pg.Code == "0A000" && !isPlanInvalid(pg):
		return store.ErrRejected
	default:
		return storeErrorOfState(pg.Code)
	}
	var queued pgx.ErrPreprocessingBatch
	if (errors.As(err, &queued) || strings.HasPrefix(err.Error(), "failed to encode")) && !pgconn.SafeToRetry(err) && !pgconn.Timeout(err) && !isConnectionError(err) {
		return store.ErrBadData // pgx itself could not encode a value
	}
	if strings.Contains(err.Error(), "message body too large") {
		return store.ErrBadData // pgx has no error type for this
	}
	return store.ErrUnavailable // a failed connection: reset, closed, interrupted or timed out
}

// storeErrorOfState returns the kind for a SQLSTATE; see appendix A of the PostgreSQL manual. A state is
// ErrBadData only if the value is certainly at fault. Unknown states are ErrRejected, which fails no run.
func storeErrorOfState(code string) error {
	switch code {
	case "22001", "22003", "22007", "22008", // too long, out of range, no time, no interval
		"22021", "22P02", "22P03", "22P05": // not in the encoding, not of the type, not in the other encoding
		return store.ErrBadData
	case "23505":
		// The statements handle existing names and steps, so these do not cause this error. The remaining case is a repeated start
		// whose first copy, whose reply was lost, is still committing.
		return store.ErrUnavailable
	case "55P03":
		return store.ErrLocked
	case "3D000", // a database that is being restored
		"25006",                   // read-only: a standby that is being promoted
		"25P02", "25P03", "25P04", // the server ended the transaction
		"26000", "0A000": // a prepared statement was lost with its session, or its plan with the table
		return store.ErrUnavailable
	case "42501":
		return store.ErrPermission
	case "53200", "53400": // out of memory, or over a configured limit: perhaps caused by one statement
		return store.ErrRejected
	case "42P01", "42703", "42883", "42P10", "3F000":
		return store.ErrSchema
	}
	if len(code) < 2 {
		return store.ErrRejected
	}
	switch code[:2] {
	case "08", // connection
		"40", // serialization failure, deadlock, outcome unknown
		"53", // disk full, too many connections
		"55", // an object that is not ready
		"57", // shutdown, a timeout, a cancel
		"58": // input and output
		return store.ErrUnavailable
	case "54": // too large for a row or an index, too complex
		return store.ErrLimit
	}
	return store.ErrRejected
}

// isConnectionError reports whether err comes from a connection rather than from a value.
func isConnectionError(err error) bool {
	var net interface{ Timeout() bool }
	return errors.As(err, &net) || errors.Is(err, pgconn.ErrConnClosed) || strings.Contains(err.Error(), "EOF")
}

// isLockTimeout reports whether a lock timeout ended the statement.
func isLockTimeout(err error) bool { return hasSQLState(err, "55P03") }

// sqlStateTooManyConns is the SQLSTATE of a connection that the server or the limit of a role refuses.
const sqlStateTooManyConns = "53300"

// sqlStateReadOnly is the SQLSTATE of a write that a standby or a read-only transaction refuses.
const sqlStateReadOnly = "25006"

// isStaleStatement reports whether a prepared statement was lost with its session, the plan of a statement became invalid with its
// table, or the server does not accept writes any more. The call may succeed on another connection.
func isStaleStatement(err error) bool { return hasSQLState(err, "26000", "0A000", sqlStateReadOnly) }

// isPlanInvalid reports whether a cached plan became invalid with its table. The message depends on
// lc_messages.
func isPlanInvalid(err *pgconn.PgError) bool {
	return err.Routine == "RevalidateCachedQuery" || strings.Contains(err.Message, "cached plan")
}

// isUniqueViolation reports whether a unique key already exists.
func isUniqueViolation(err error) bool { return hasSQLState(err, "23505") }

// hasSQLState reports whether err is an error of the server with one of these SQLSTATEs.
func hasSQLState(err error, states ...string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && slices.Contains(states, pg.Code)
}
