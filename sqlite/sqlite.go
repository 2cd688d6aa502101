// Package sqlite stores durable's runs, steps and workers in an SQLite file.
//
//	store, err := sqlite.Open("shop.db")
//	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{Checkout}})
//
// No server is needed. Any number of processes of one machine may share the file. It may also hold tables of your own; the names
// of durable's tables begin with durable_. Committed data survives a crash of every process and, unless you choose
// Synchronous([Normal]), a crash of the machine.
//
// [Tx] executes a step whose writes commit together with its checkpoint. [StartTx] and [SignalTx] start and signal runs in your
// own transaction; begin it on [Store.Writer].
//
// # Locks
//
// SQLite executes one write transaction at a time. A store has one connection that writes. Its transactions take the write lock
// when they begin (BEGIN IMMEDIATE), and wait for other processes no longer than [BusyTimeout] and their context. A few more
// connections read; because of the write-ahead log they never wait for a writer. Every commit syncs the log, unless you choose
// Normal. The engine commits the checkpoints of many runs together, so a sync serves many steps.
//
// Each worker holds a lock on a file in the folder "<file>-workers". The operating system releases the lock when the process dies,
// so other workers take over its runs at once. On systems other than Unix, takeover happens when the lease expires. A process
// notices the commits of other processes by notifications of the file system on Linux, and within about 20 ms elsewhere.
//
// # Not supported
//
//   - Network file systems, whose locks are not reliable enough for SQLite.
//   - In-memory databases, which do not survive their process.
//   - Copying the file alone while it is in use: copy the "-wal" file with it, or use VACUUM INTO.
//
// The driver is modernc.org/sqlite, which needs no C compiler.
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

// readerConns is the number of connections that read.
const readerConns = 4

var _ store.Store = (*database)(nil)

// database is the implementation of a [Store].
type database struct {
	store.SharedValues
	path                string // absolute, without links
	statementTexts      *statementTexts
	files               *movedFileDetector
	writerDB            *sql.DB // one connection, which is never closed while idle
	readerDB            *sql.DB
	listenerDB          *sql.DB   // one connection for each call of Listen
	anchorConn          *sql.Conn // open until Close, since SQLite deletes the log when the last connection is closed
	workerLocks         workerLockFolder
	unadmittedLaneCache unadmittedLaneCache
	knownWorkers        knownWorkers
	writeLockWait       lockWait

	closed atomic.Bool
	done   chan struct{} // closed by Close

	mu              sync.Mutex // guards listeners, and setting closed
	listeners       map[*func(store.WakeHint)]struct{}
	activeListeners sync.WaitGroup // calls of Listen that have not returned; Close waits for them
}

// openDatabase is [Open] without the wrapper.
func openDatabase(path string, opts ...Option) (*database, error) {
	o := defaultOptions()
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
	if err := checkWritable(path, located); err != nil {
		return nil, err
	}
	t, f := loadStatements(), newMovedFileDetector(located)
	write, err := newConnector(dataSourceName(located, writerSettings(o)), t, f, o.busyTimeout)
	if err != nil {
		return nil, &OpenError{Path: path, Problem: "the driver refuses the path", Fix: "use another path", Err: err}
	}
	read, err := newConnector(dataSourceName(located, readerSettings(o)), t, f, o.busyTimeout)
	if err != nil {
		return nil, &OpenError{Path: path, Problem: "the driver refuses the path", Fix: "use another path", Err: err}
	}
	s := &database{
		path: located, statementTexts: t, files: f, workerLocks: newWorkerLockFolder(located),
		writerDB: openPool(write, 1), readerDB: openPool(read, readerConns), listenerDB: openPool(read, 0),
		done: make(chan struct{}), listeners: make(map[*func(store.WakeHint)]struct{}),
	}
	write.writeLockWait = &s.writeLockWait
	ctx, cancel := context.WithTimeout(context.Background(), o.busyTimeout+openTimeout)
	defer cancel()
	if err := s.prepareFile(ctx, o.migrate); err != nil {
		return nil, errors.Join(explainOpenError(path, o.busyTimeout, err), s.Close())
	}
	if err := s.openAnchorConn(ctx); err != nil {
		return nil, errors.Join(explainOpenError(path, o.busyTimeout, err), s.Close())
	}
	return s, nil
}

// writePermissionFix is the fix that errors about unwritable files name.
const writePermissionFix = "give this process write permission on the file, on its -wal and -shm files if there are any, and on its folder"

// checkWritable returns an error if this process cannot write to one of the database's files. It is called before SQLite opens
// them: SQLite would open a read-only file without an error, and leave a read-only -shm file behind.
func checkWritable(path, located string) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := checkWritePermission(located + suffix); err != nil {
			problem := "it is read-only"
			if suffix != "" {
				problem = fmt.Sprintf("its file %q is read-only", located+suffix)
			}
			return &OpenError{Path: path, Problem: problem, Fix: writePermissionFix, Err: err}
		}
	}
	return nil
}

// openAnchorConn opens the connection that stays open until Close, and records which files are open.
func (s *database) openAnchorConn(ctx context.Context) (err error) {
	if s.anchorConn, err = s.listenerDB.Conn(ctx); err != nil {
		return s.wrapError("open", err)
	}
	err = s.anchorConn.Raw(func(raw any) error {
		c := raw.(*conn)
		return retryBusy(ctx, c.busyTimeout, func() error {
			_, err := queryInt(c, qMigrationTableExists) // a read opens the log
			return err
		})
	})
	if err != nil {
		return s.wrapError("open", err)
	}
	return s.files.recordFileIdentities()
}

// explainOpenError converts the errors of an unusable file to an OpenError, which says what to do.
func explainOpenError(path string, patience time.Duration, err error) error {
	e := &OpenError{Path: path}
	var said *sqlite.Error
	if errors.As(err, &said) {
		e.Err = said // not wrapped in store.ErrUnavailable, because a retry does not help
	}
	switch primaryResultCode(resultCode(err)) {
	case sqlite3.SQLITE_CANTOPEN:
		e.Problem = "SQLite cannot open or create it"
		e.Fix = "give this process write permission on the file and on its folder, where SQLite keeps the -wal and -shm files"
	case sqlite3.SQLITE_READONLY:
		e.Problem = "it is read-only"
		e.Fix = writePermissionFix
	case sqlite3.SQLITE_NOTADB:
		e.Problem = "it is not an SQLite database"
		e.Fix = "name another file"
	case sqlite3.SQLITE_BUSY:
		e.Err = fmt.Errorf("%w: %w", store.ErrUnavailable, said) // a retry may help
		e.Problem = fmt.Sprintf("another connection has locked it for longer than %v (BusyTimeout)", patience)
		e.Fix = lockedFix
	default:
		if !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		e.Err = context.DeadlineExceeded
		e.Problem = fmt.Sprintf("it was locked, or the disk did not reply, for %v (a minute more than BusyTimeout)", patience+openTimeout)
		e.Fix = lockedFix
	}
	return e
}

// lockedFix is the fix that errors about locked files name.
const lockedFix = "end the transaction or the process that has locked the file, check the disk, or raise BusyTimeout"

// openTimeout is how much longer than the BusyTimeout Open takes at most.
const openTimeout = time.Minute

// openPool returns a database handle with at most n connections, which stay open. If n is 0, their number is not
// limited.
func openPool(k *connector, n int) *sql.DB {
	db := sql.OpenDB(k)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(max(n, 1))
	return db
}

// Name implements store.Store.
func (s *database) Name() string { return "sqlite" }

// CommitsSerially implements store.SerialCommitter: an SQLite file has one writer.
func (s *database) CommitsSerially() {}

// Close implements store.Store. Calls that have begun end normally. Later calls return durable.ErrClosed. Close may be
// called several times.
func (s *database) Close() error {
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
	// The writer is closed last: the last connection copies the log into the file.
	return errors.Join(held, s.listenerDB.Close(), s.readerDB.Close(), s.writerDB.Close())
}

// notifyListeners gives hints to every call of Listen on this store, directly after a commit.
func (s *database) notifyListeners(what store.WakeHint) {
	if what == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for onHint := range s.listeners {
		sendHints(*onHint, what)
	}
}

func sendHints(onHint func(store.WakeHint), what store.WakeHint) {
	for _, one := range [...]store.WakeHint{store.HintClaim, store.HintAdmitted, store.HintOwnedRunChange} {
		if what&one != 0 {
			onHint(one)
		}
	}
}
