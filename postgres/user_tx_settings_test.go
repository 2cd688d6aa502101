package postgres

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// witness records the statements that connections of the user's pool send.
type witness struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (w *witness) note(conn *pgx.Conn, sql string) {
	if conn.Config().RuntimeParams["application_name"] == "durable" { // one of the store's own
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[sql] = true
}

func (w *witness) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	w.note(conn, data.SQL)
	return ctx
}
func (w *witness) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (w *witness) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, q := range data.Batch.QueuedQueries {
		w.note(conn, q.SQL)
	}
	return ctx
}
func (w *witness) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (w *witness) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// TestStatementsInUsersTransactionsSaySo: the file of a statement that is executed in a user's session
// says so in its head. By this head, package lint knows which files must qualify every name.
func TestStatementsInUsersTransactionsSaySo(t *testing.T) {
	cfg, err := pgxpool.ParseConfig(with(pgtest.URL(t), "client_encoding=LATIN1"))
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{seen: make(map[string]bool)}
	cfg.ConnConfig.Tracer = w
	s := openOver(t, cfg)
	ctx, at := t.Context(), now(t, s)
	in := func(fn func(tx pgx.Tx) error) {
		t.Helper()
		if err := pgx.BeginFunc(ctx, s.userPool, fn); err != nil {
			t.Error(err)
		}
	}
	plain, first, second, tagged := pending(at), pending(at), pending(at), pending(at)
	owned := running(uuid.New(), at)
	begin(t, s, &store.StartWrite{Run: owned})
	placed := pending(at)
	placed.Admission = store.AdmissionPending
	for range 2 { // the second time everything exists
		in(func(tx pgx.Tx) error { return s.startRunsInTx(ctx, tx, []*store.StartWrite{{Run: plain}}) })
		in(func(tx pgx.Tx) error {
			return s.startRunsInTx(ctx, tx, []*store.StartWrite{{Run: first}, {Run: second}})
		})
		in(func(tx pgx.Tx) error {
			return s.startRunsInTx(ctx, tx, []*store.StartWrite{{Run: tagged, Tags: []store.Tag{{Key: "shop.kind", Value: "book"}}}})
		})
		in(func(tx pgx.Tx) error {
			place := &store.QueuePlace{Run: placed.UUID, Queue: placed.Queue, Weight: 1, Root: true, State: store.PlaceNotArrived}
			return s.startRunsInTx(ctx, tx, []*store.StartWrite{{Run: placed, Place: place}})
		})
		in(func(tx pgx.Tx) error {
			sent := signal(owned.UUID, "go", "1", at)
			sent.Key = "once"
			return s.signalInTx(ctx, tx, store.RunRef{UUIDOrName: owned.Name}, sent)
		})
		in(func(tx pgx.Tx) error {
			return s.updateStartKeyRowInTx(ctx, tx, &store.StartKeyChangeRequest{
				Key: store.StartKey{Workflow: "w", Key: "k", Kind: store.StartKeySingleton}, Name: plain.Name,
				RunsToRead: func(*store.StartKeyRow) []uuid.UUID { return []uuid.UUID{owned.UUID} },
				Plan: func(store.StartKeySnapshot) *store.StartKeyWrite {
					return &store.StartKeyWrite{Row: store.StartKeyRow{CheckAt: at, State: []byte("{}")}, RunToCreate: &store.StartWrite{Run: pending(at)}}
				},
			})
		})
		undone := &pgconn.PgError{Code: "40001"}
		if err := s.executeTxStepOnce(ctx, done(owned.UUID, "a step", at), func(context.Context, pgx.Tx) error { return nil }, undone); err != nil {
			t.Error(err)
		}
	}
	fenced := done(owned.UUID, "another", at)
	fenced.Step.Epoch = store.Epoch{Count: 7}
	if err := s.executeTxStepOnce(ctx, fenced, func(context.Context, pgx.Tx) error { return nil }, nil); err != nil || fenced.Outcome != store.Fenced {
		t.Errorf("outcome %d, %v", fenced.Outcome, err)
	}

	entries, err := files.ReadDir("sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := files.ReadFile("sql/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		says := strings.Contains(string(text), "runs under a search_path that may be anybody's")
		runs := w.seen[statementText(e.Name(), DefaultSchema)]
		delete(w.seen, statementText(e.Name(), DefaultSchema))
		if runs && !says {
			t.Errorf("%s runs in users' transactions: say so in its head, and qualify every name", e.Name())
		}
		if says && !runs && e.Name() != "set_engine_session_settings.sql" {
			t.Errorf("%s does not run in users' transactions here, and says so", e.Name())
		}
	}
	for sql := range w.seen {
		if !strings.HasPrefix(sql, "begin") && !strings.HasPrefix(sql, "commit") && !strings.HasPrefix(sql, "rollback") {
			t.Errorf("a statement of no file: %s", sql)
		}
	}
}
