// Package postgres stores the runs of durable in PostgreSQL 15 or newer.
//
//	store, err := postgres.Open(ctx, "postgres://localhost/shop")
//	store, err := postgres.New(pool) // with an existing pool
//
// [Open] and [New] create the tables in the schema durable, or in the schema of the option [Schema]. Pass the store to durable.New,
// and close it after Engine.Run has returned.
//
// # Your transactions
//
// [Tx] is a step that commits your writes together with its record, exactly once. [StartTx] starts a run and [SignalTx] sends a
// signal if and when your own transaction commits.
//
// # Connections
//
// The store opens connections of its own, and uses your pool only for your transactions. A program whose transactions exhaust the
// pool therefore keeps its runs. The connections of a store are:
//
//	your pool                        Tx, StartTx and SignalTx                              the size of your pool
//	statements                       commits, claims, reads, control                       up to 6
//	heartbeats                       heartbeats and the clock                              1, or 3 if connections hang
//	notifications                    LISTEN, and the lock that shows that the worker lives 1
//
// The stores that [Store.OpenSchema] returns for further schemas of the database share these connections.
//
// # Poolers, standbys and Citus
//
// Behind PgBouncer in transaction mode, add default_query_exec_mode=cache_describe to the URL. Then there are no notifications:
// idle workers poll, and the runs of a dead worker are taken over when its leases expire. With standbys, list all hosts in the
// URL. On a Citus cluster that keeps the schema on one node, the store finds that node and connects to it, whichever node the
// URL names.
//
// # Security
//
// The search_path of the store's sessions is pg_catalog, so that they use no operator, function or type that another role has
// created. In your transactions the settings of your session stay as they are. A schema that a role owns which is not trusted is
// refused; see [UntrustedOwnerError] and [OwnedBy]. Errors contain no password.
package postgres
