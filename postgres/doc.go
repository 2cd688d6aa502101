// Package postgres stores the runs of durable in PostgreSQL 15 or newer.
//
//	store, err := postgres.Open(ctx, "postgres://localhost/shop")
//	store, err := postgres.New(pool) // with an existing pool
//
// # Connections
//
// The engine's own work never uses the user's pool. So a program whose transactions exhaust the pool
// keeps its leases:
//
//	user's pool    transactional steps, StartTx, SignalTx   the user's size
//	engine's pool  commits, claims, reads, control          up to 6
//	heartbeat pool heartbeats and the clock                 1 (3 if connections hang)
//	presence       LISTEN and the presence lock             1, outside the pools
//
// # One flush, one round trip, one transaction
//
// The store sends the statements of a flush as one pipeline that ends with one Sync. On a direct
// connection that makes them one transaction, and the settings that they need (engine_settings.sql) are set at
// the beginning of the session. Behind a pooler, settings do not last for a session. There the pipeline
// contains BEGIN, the settings for the transaction, and COMMIT, and still takes one round trip. The store
// detects a pooler when it connects: a pooler announces a process ID that is not the server's.
//
// The stores of OpenSchema share all of these connections; see shared_conns.go, listen_shared.go and sight.go.
//
// On a Citus cluster that keeps the schema on one node, the connections lead to that node, and pipelines contain BEGIN and
// COMMIT too; see citus.go.
//
// # Sessions
//
// The search_path of the store's own sessions is pg_catalog, so that they use no operator, function or
// type that another role has created. engine_settings.sql lists all settings. A user's transaction keeps its own
// settings, so the statements of durable in it qualify every name; see roundTripInUserTx. The head of the .sql file
// tells package lint which kind a statement is, and a test compares that with the executed statements. A
// schema that an untrusted role owns is refused; see UntrustedOwnerError.
//
// # SQL
//
// Every statement is in a .sql file of the folder sql, with a comment on what it does and why it has its
// shape. Values are always bound. Only the name of the schema is replaced in the text.
//
// This package imports internal/store, schema and pgx.
package postgres
