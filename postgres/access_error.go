package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// AccessReason is the reason why the PostgreSQL server refuses a connection.
type AccessReason string

// The reasons of an [AccessError].
const (
	WrongPassword   AccessReason = "password"   // 28P01: the password is wrong, or the role does not exist
	UnknownDatabase AccessReason = "database"   // 3D000: the database does not exist
	RefusedRole     AccessReason = "role"       // 28000: the role does not exist, may not log in, or pg_hba.conf rejects it
	NoPrivilege     AccessReason = "permission" // 42501: the role lacks CONNECT on the database
)

// AccessError is returned when the server can be reached but refuses a connection. [Open] and [New] return it together with
// [durable.ErrInvalidConfig]. If the server begins to refuse connections later, for example after a password was changed or while the
// database is restored, calls return an AccessError together with [durable.ErrUnavailable]; the engine logs the error and tries again. An
// AccessError contains no password.
type AccessError struct {
	Reason   AccessReason
	Role     string // the role that wanted to connect
	Database string
	err      *pgconn.PgError
}

// Error returns a message that says what the server refuses and how to fix it.
func (e *AccessError) Error() string {
	var what, fix string
	switch e.Reason {
	case WrongPassword:
		what, fix = "the password of role %q is wrong, or there is no such role", "correct the user name or the password"
	case UnknownDatabase:
		what, fix = "database %q does not exist", "correct its name, or create it"
		return fmt.Sprintf(what+": %s (%s, SQLSTATE %s)", e.Database, fix, e.err.Message, e.err.Code)
	case RefusedRole:
		what, fix = "role %q may not connect", "create it with LOGIN, or allow it in pg_hba.conf"
	default:
		what, fix = "role %q lacks a privilege to connect", "GRANT CONNECT ON DATABASE to it"
	}
	return fmt.Sprintf(what+": %s (%s, SQLSTATE %s)", e.Role, fix, e.err.Message, e.err.Code)
}

// Unwrap returns the server's own error.
func (e *AccessError) Unwrap() error { return e.err }

// accessReasons maps SQLSTATEs to reasons.
var accessReasons = map[string]AccessReason{"28P01": WrongPassword, "3D000": UnknownDatabase, "28000": RefusedRole, "42501": NoPrivilege}

// asAccessError returns the server's refusal of a connection, or nil if err has another cause.
func asAccessError(err error) *AccessError {
	var connecting *pgconn.ConnectError
	var pg *pgconn.PgError
	if !errors.As(err, &connecting) || !errors.As(err, &pg) || accessReasons[pg.Code] == "" {
		return nil
	}
	access := &AccessError{Reason: accessReasons[pg.Code], err: pg}
	if cfg := connecting.Config; cfg != nil {
		access.Role, access.Database = cfg.User, cfg.Database
	}
	return access
}

// asUnreachableError returns the error of a connection that reached no server, or nil if err has another cause.
func asUnreachableError(err error) *pgconn.ConnectError {
	var connecting *pgconn.ConnectError
	var pg *pgconn.PgError
	if !errors.As(err, &connecting) || errors.As(err, &pg) {
		return nil
	}
	return connecting
}
