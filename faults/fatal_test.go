package faults

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/realtime"
)

// lastPoint is the point after the commit.
const lastPoint = 11

// fatalPoint is the point of a transaction at which the process dies. It is also the tracer of the connections to PostgreSQL, and
// counts their round trips.
type fatalPoint struct {
	last   int64  // the point after the commit; zero: lastPoint
	point  int64  // 0: before the transaction; then the number of a round trip; SQLite has none, and dies a while after the decision
	kind   string // of the store
	inside atomic.Bool
	trips  atomic.Int64
}

// enter is called before the transaction, which ends with leave.
func (f *fatalPoint) enter() (leave func()) {
	if f.point == 0 {
		die()
	}
	f.trips.Store(0)
	f.inside.Store(true)
	return func() { f.inside.Store(false) }
}

// decided is called inside the transaction, before its first write.
func (f *fatalPoint) decided() {
	if f.kind == "sqlite" && f.point > 0 && f.point < lastPoint {
		go func() {
			realtime.Pass(time.Duration(f.point*f.point)*30*time.Microsecond, "statements of the transaction are executed before the process dies")
			die()
		}()
	}
}

// committed is called after the commit.
func (f *fatalPoint) committed() {
	if f.point == lastPoint {
		die()
	}
}

func (f *fatalPoint) trip() {
	if f.inside.Load() && f.trips.Add(1) == f.point && f.point < max(f.last, lastPoint) {
		die()
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (f *fatalPoint) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	f.trip()
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (f *fatalPoint) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (f *fatalPoint) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	f.trip()
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (f *fatalPoint) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (f *fatalPoint) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
