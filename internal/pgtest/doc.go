// Package pgtest gives tests a throwaway PostgreSQL, and never skips.
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
// # Whom it leaves behind
//
// Nobody. Main and Close stop the server and remove its files. On Linux the kernel
// tells the server to quit as soon as the process that started it dies, in whatever
// way; the files that such a death leaves are swept by the next Start.
//
// This package is for tests, examples and benchmarks; the library never imports it.
package pgtest
