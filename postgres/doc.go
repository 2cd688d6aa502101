// Package postgres keeps durable's runs in PostgreSQL 15 or newer.
//
//	store, err := postgres.Open(ctx, "postgres://localhost/shop")
//	store, err := postgres.New(pool) // with a pool that the program has already
//
// # Connections
//
// The user's pool is never used for the engine's own work, so that a program whose
// transactions exhaust it keeps its leases:
//
//	user's pool    transactional steps, StartTx, SignalTx   the user's size
//	engine's pool  commits, claims, reads, orders           up to 6
//	pulse          renewals and the clock                   1
//	attendance     LISTEN and the presence lock             1, of its own
//
// # One flush, one round trip, one transaction
//
// Statements go out as one pipeline that ends in one Sync. On a direct connection
// that alone makes them one transaction, and the settings they need (session.sql) were
// made when the session began. Behind a pooler settings do not last, so there the
// pipeline itself begins, makes the settings for its transaction, and commits: it is
// still one round trip. Which of the two it is shows when a connection is made: a
// pooler announces a process ID that is not the server's.
//
// # Sessions
//
// The store's own sessions search pg_catalog only, so that nothing another role has created is
// taken for an operator, a function or a type of PostgreSQL; session.sql has all that they set.
// A transaction of the user's keeps its settings: the statements that durable executes in it qualify every
// name, see inUsers. Package lint tells the two kinds apart by the head of the file, and a
// test by what is executed. A schema that a stranger owns is refused, see OwnerError.
//
// # SQL
//
// Every statement is in a .sql file of this folder, with what it does and why it has
// its shape. Values are always bound. The schema's name is the only thing ever
// replaced in them.
//
// This package imports the seam, the schema and pgx.
package postgres
