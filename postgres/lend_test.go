package postgres

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/pgtest"
)

// restingStores is how many returned stores of one mode are kept unused. A statement that a case has sent and not awaited
// may reach the server after the case.
const restingStores = 4

// kept are the tables of a schema that its migration has filled.
var kept = []string{"migration", "secret"}

// lender lends the cases of the suite stores, each on a schema that is empty and that no other case uses. A store is
// lent again after its case: a new session costs the server about 25 ms, since it reads the catalog and plans each
// statement, and a store opens several.
type lender struct {
	url      string // of a superuser
	mu       sync.Mutex
	admin    *pgx.Conn // empties schemas; nil until the first is emptied
	returned map[string][]lentStores
}

// lentStores are the stores on one schema.
type lentStores struct {
	schema string
	stores []*database
}

// newLender returns a lender that closes its stores at the end of the test.
func newLender(t *testing.T) *lender {
	l := &lender{url: pgtest.ServerURL(t), returned: make(map[string][]lentStores)}
	t.Cleanup(func() {
		for _, all := range l.returned {
			for _, lent := range all {
				lent.close(t)
			}
		}
		if l.admin != nil {
			_ = l.admin.Close(context.Background()) // nothing is left to do
		}
	})
	return l
}

// lend returns n stores on one schema in one of pgx's modes. They have the rights of a worker and no others.
func (l *lender) lend(t *testing.T, mode string, n int) []*database {
	t.Helper()
	reserve(t)
	lent, found := l.take(t, mode)
	if !found {
		lent.schema = pgtest.Schema(t)
		for range n {
			lent.stores = append(lent.stores, openAsWorker(t, mode, lent.schema))
		}
	}
	t.Cleanup(func() {
		if t.Failed() { // what the case has left in the stores is unknown
			lent.close(t)
			return
		}
		for _, s := range lent.stores {
			if s.isClosed() { // by the case
				lent.close(t)
				return
			}
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.returned[mode] = append(l.returned[mode], lent)
	})
	return lent.stores
}

// take returns the stores that were returned first, with an empty schema, and reports whether there are some.
func (l *lender) take(t *testing.T, mode string) (lent lentStores, found bool) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.returned[mode]) <= restingStores {
		return lent, false
	}
	lent, l.returned[mode] = l.returned[mode][0], l.returned[mode][1:]
	if err := l.empty(t.Context(), lent); err != nil {
		t.Logf("the stores on %s are not lent again: %v", lent.schema, err)
		lent.close(t)
		return lentStores{}, false
	}
	return lent, true
}

// empty deletes the rows of the schema, and what the stores know of them. The caller holds l.mu.
func (l *lender) empty(ctx context.Context, lent lentStores) error {
	if l.admin == nil || l.admin.IsClosed() {
		conn, err := pgx.Connect(ctx, l.url)
		if err != nil {
			return err
		}
		l.admin = conn
	}
	for _, s := range lent.stores {
		s.knownLanes.mu.Lock()
		s.knownLanes.lanes, s.knownLanes.laneReadAt, s.knownLanes.claimFilter, s.knownLanes.claimedLanes = nil, time.Time{}, nil, nil
		s.knownLanes.mu.Unlock()
		s.rewindDetector.mu.Lock()
		clear(s.rewindDetector.ownedRuns)
		s.rewindDetector.mu.Unlock()
	}
	return pgtest.EmptySchema(ctx, l.admin, lent.schema, kept...)
}

// close closes the stores. A second Close of a store does nothing.
func (l lentStores) close(t *testing.T) {
	t.Helper()
	for _, s := range l.stores {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
