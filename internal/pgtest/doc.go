// Package pgtest starts a temporary PostgreSQL for tests. Without PostgreSQL tests fail; they are never
// skipped.
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
//	func TestOrders(t *testing.T) {
//		t.Parallel()
//		store, err := postgres.Open(t.Context(), pgtest.URL(t))
//		...
//
// The first URL starts one server for the test binary; each test gets a database of
// its own in it, dropped when the test ends. That server runs without fsync, because
// nothing outlives it. A test that stops, kills or restarts PostgreSQL starts its own
// with Start, where fsync is on.
//
// # Where the server comes from
//
// DATABASE_URL, if set, names a server for URL to create its databases in. Otherwise
// the newest PostgreSQL (15 or later) of PG_BINDIR, /usr/lib/postgresql/*/bin,
// pg_config --bindir and PATH is run in a temporary directory. Root on a Debian
// machine that has none gets it installed by apt-get. Everyone else is told what to
// install, and the tests fail.
//
// # Cleaning up
//
// Main and Close stop the server and remove its files. On Linux, if the process that started the
// server dies, the kernel signals the server to quit, and the next Start removes its files.
//
// This package is for tests, examples and benchmarks; the library never imports it.
package pgtest
