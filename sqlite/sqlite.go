// Package sqlite keeps durable's runs, steps and workers in one SQLite file.
//
//	store, err := sqlite.Open("shop.db")
//
// Nothing else needs to run. The file may be shared by any number of processes of
// one machine; it may hold tables of your own beside durable's, whose names begin
// with durable_. What was acknowledged survives the death of every process and,
// unless Synchronous(Normal) is asked for, of the machine.
//
// # How it works
//
// SQLite lets one transaction write at a time. So a store has one connection that
// writes, in transactions that take the write lock at once (BEGIN IMMEDIATE) and
// wait for other processes no longer than their context; and a few that read,
// which the write-ahead log never makes wait. Every write to the log that commits
// is synced; group commit, by the journal above, is what makes that fast.
//
// Workers are seen to be gone by the lock that the operating system holds on a
// file for each, in the folder "<file>-workers", and releases when a process
// dies, however it dies. Where there are no such locks (anything but Unix), the
// expiry of leases does the same, later. Commits of other processes are
// noticed within about 20 ms.
//
// # What is not supported
//
// Network file systems: their locks do not hold SQLite's promises. In-memory
// databases: there is nothing durable about them. Copying the file while it is in
// use: take the "-wal" file with it, or use VACUUM INTO.
//
// The store imports the seam, the schema and the driver modernc.org/sqlite, which
// needs no C compiler; only Tx, StartTx and SignalTx (transact.go) know package durable.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// maxReaders is how many connections read at once.
const maxReaders = 4

var _ store.Store = (*Store)(nil)

// Store is one SQLite file. It is safe for concurrent use.
type Store struct {
	path        string // absolute, without links
	texts       *statementTexts
	files       *openFiles
	writerDB    *sql.DB // one connection, never closed for idleness
	readerDB    *sql.DB
	attendDB    *sql.DB   // one connection for each Attend
	anchorConn  *sql.Conn // open as long as the store is: the last connection of all would delete the log
	workerLocks workerLocks

	closed atomic.Bool
	done   chan struct{} // closed by Close

	mu              sync.Mutex // guards hints, and the step from open to closed
	listeners       map[*func(store.Hint)]struct{}
	activeListeners sync.WaitGroup // every Attend under way; Close waits for them
}

// Open opens the file at path, creates it if there is none (its folder must
// exist), and brings its schema up to date. A path is taken as it stands: it is
// not a URI, and no character in it is special. A path that begins with postgres://, postgresql://
// or file: is refused. The caller closes the store.
//
// A file that cannot be used is answered with an *OpenError, or with an error
// wrapping durable.ErrSchema if its schema does not fit this version of the code.
func Open(path string, opts ...Option) (*Store, error) {
	o := defaults()
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("sqlite: %w: the Option at place %d of %d is nil: leave it out", durable.ErrInvalidConfig, i+1, len(opts))
		}
		opt(&o)
	}
	if o.err != nil {
		return nil, o.err
	}
	if o.busyTimeout < 0 {
		return nil, &OpenError{Path: path, Problem: fmt.Sprintf("BusyTimeout is %v", o.busyTimeout), Fix: "make it zero or more"}
	}
	located, err := resolvePath(path)
	if err != nil {
		return nil, err
	}
	if err := writable(path, located); err != nil {
		return nil, err
	}
	t, f := loadStatements(), newOpenFiles(located)
	write, err := newConnector(dsn(located, writerSettings(o)), t, f, o.busyTimeout)
	if err != nil {
		return nil, &OpenError{Path: path, Problem: "the driver refuses the path", Fix: "use another path", Err: err}
	}
	read, err := newConnector(dsn(located, readerSettings(o)), t, f, o.busyTimeout)
	if err != nil {
		return nil, &OpenError{Path: path, Problem: "the driver refuses the path", Fix: "use another path", Err: err}
	}
	s := &Store{
		path: located, texts: t, files: f, workerLocks: newWorkerLocks(located),
		writerDB: openPool(write, 1), readerDB: openPool(read, maxReaders), attendDB: openPool(read, 0),
		done: make(chan struct{}), listeners: make(map[*func(store.Hint)]struct{}),
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.busyTimeout+time.Minute)
	defer cancel()
	if err := s.prepareFile(ctx, o.migrate); err != nil {
		return nil, errors.Join(explainOpenError(path, err), s.Close())
	}
	if err := s.openAnchor(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// givePermission is the fix of an error about a file that cannot be written.
const givePermission = "give this process write permission on the file, on its -wal and -shm files if there are any, and on its folder"

// writable returns an error if one of the files that there are cannot be written. That is found out before SQLite opens
// them: it would open a read-only file all the same, and leave a -shm behind that nobody can write later either.
func writable(path, located string) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := mayWrite(located + suffix); err != nil {
			problem := "it is read-only"
			if suffix != "" {
				problem = fmt.Sprintf("its file %q is read-only", located+suffix)
			}
			return &OpenError{Path: path, Problem: problem, Fix: givePermission, Err: err}
		}
	}
	return nil
}

// openAnchor opens the connection that stays, and notes which files are open.
func (s *Store) openAnchor(ctx context.Context) (err error) {
	if s.anchorConn, err = s.attendDB.Conn(ctx); err != nil {
		return s.wrap("open", err)
	}
	err = s.anchorConn.Raw(func(raw any) error {
		c := raw.(*conn)
		return retryBusy(ctx, c.busyTimeout, func() error {
			_, err := queryInt(c, qMigrationExists) // opens the log
			return err
		})
	})
	if err != nil {
		return s.wrap("open", err)
	}
	return s.files.recordIdentities()
}

// explainOpenError gives the errors that a wrong file causes at Open their fix.
func explainOpenError(path string, err error) error {
	e := &OpenError{Path: path}
	var said *sqlite.Error
	if errors.As(err, &said) {
		e.Err = said // and not store.ErrUnavailable: trying again does not help
	}
	switch primaryCode(resultCode(err)) {
	case sqlite3.SQLITE_CANTOPEN:
		e.Problem = "SQLite cannot open or create it"
		e.Fix = "give this process write permission on the file and on its folder, where SQLite keeps the -wal and -shm files"
	case sqlite3.SQLITE_READONLY:
		e.Problem = "it is read-only"
		e.Fix = givePermission
	case sqlite3.SQLITE_NOTADB:
		e.Problem = "it is not an SQLite database"
		e.Fix = "name another file"
	default:
		return err
	}
	return e
}

// openPool is a database handle of at most n connections (0: any number), which stay
// open once they are.
func openPool(k *connector, n int) *sql.DB {
	db := sql.OpenDB(k)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(max(n, 1))
	return db
}

// Name implements store.Store.
func (s *Store) Name() string { return "sqlite" }

// Serial implements store.Serial: a file has one writer.
func (s *Store) CommitsSerially() {}

// Close implements store.Store. Calls under way end as they would have; those
// that begin later are answered with durable.ErrClosed. Closing again is harmless.
func (s *Store) Close() error {
	s.mu.Lock()
	again := s.closed.Swap(true)
	s.mu.Unlock()
	if again {
		return nil
	}
	close(s.done)
	s.activeListeners.Wait()
	var held error
	if s.anchorConn != nil {
		held = s.anchorConn.Close()
	}
	// The writer last: the last connection of all folds the log into the file.
	return errors.Join(held, s.attendDB.Close(), s.readerDB.Close(), s.writerDB.Close())
}

// notifyListeners tells every Attend of this store, directly after a commit, what that may have
// done: one hint, or several at once.
func (s *Store) notifyListeners(what store.Hint) {
	if what == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for hear := range s.listeners {
		sendHints(*hear, what)
	}
}

func sendHints(hear func(store.Hint), what store.Hint) {
	for _, one := range [...]store.Hint{store.HintClaim, store.HintNotification} {
		if what&one != 0 {
			hear(one)
		}
	}
}
