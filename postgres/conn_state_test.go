package postgres

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// Every column is encoded as pgx would encode it.
func TestColumnsAreEncodedAsPgxDoes(t *testing.T) {
	types := pgtype.NewMap()
	registerParameterTypes(types)
	id, empty, text := uuid.New(), "", "a text: ä\x00"
	list := []uuid.UUID{id, uuid.Nil}
	blob, none, zero := []byte{0, 1, 255}, []byte(nil), []byte{}
	at := time.Date(2026, 11, 21, 1, 2, 3, 456_789_999, time.FixedZone("", 3600))
	old, never := time.Date(1887, 1, 1, 0, 0, 0, 1000, time.UTC), time.Time{}
	for name, c := range map[string]struct {
		oid    uint32
		column arrayParam
	}{
		"uuids": {pgtype.UUIDArrayOID, uuidArray{3, func(i int) *uuid.UUID {
			if i == 2 {
				return nil
			}
			return &list[i]
		}}},
		"texts": {pgtype.TextArrayOID, textArray{3, func(i int) *string { return []*string{&text, nil, &empty}[i] }}},
		"blobs": {pgtype.ByteaArrayOID, byteaArray{3, func(i int) *[]byte { return []*[]byte{&blob, &none, &zero}[i] }}},
		"times": {pgtype.TimestamptzArrayOID, timeArray{3, func(i int) *time.Time { return []*time.Time{&at, &never, &old}[i] }}},
		"int2s": {pgtype.Int2ArrayOID, int2Array{3, func(i int) int16 { return []int16{0, -1, math.MaxInt16}[i] }}},
		"int4s": {pgtype.Int4ArrayOID, int4Array{3, func(i int) int32 { return []int32{0, math.MinInt32, 7}[i] }}},
		"bools": {pgtype.BoolArrayOID, boolArray{2, func(i int) bool { return i == 1 }}},
		"none":  {pgtype.TextArrayOID, textArray{}},
	} {
		want, err := types.Encode(c.oid, pgx.BinaryFormatCode, c.column, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		got := c.column.encode(nil)
		if len(want) >= 8 { // the flag for NULLs is only a hint
			want[7], got[7] = 0, 0
		}
		if string(got) != string(want) {
			t.Errorf("%s: encoded as\n%x, pgx says\n%x", name, got, want)
		}
	}
}

// Every single value is encoded as pgx would encode it, or left to pgx.
func TestValuesAreEncodedAsPgxDoes(t *testing.T) {
	types := pgtype.NewMap()
	registerParameterTypes(types)
	id, empty, text := uuid.New(), "", "a text: ä\x00"
	blob, zero := []byte{0, 1, 255}, []byte{}
	at := time.Date(1887, 1, 1, 0, 0, 0, 456_789_999, time.FixedZone("", 3600))
	for _, c := range []struct {
		oid   uint32
		value any
		ours  bool
	}{
		{pgtype.BoolOID, true, true},
		{pgtype.BoolOID, false, true},
		{pgtype.Int2OID, int16(math.MinInt16), true},
		{pgtype.Int4OID, int32(math.MinInt32), true},
		{pgtype.Int4OID, int16(-1), false},
		{pgtype.Int8OID, int64(math.MinInt64), true},
		{pgtype.Int8OID, int32(-1), false},
		{pgtype.UUIDOID, (*uuidValue)(&id), true},
		{pgtype.TextOID, (*nullableText)(&text), true},
		{pgtype.TextOID, (*nullableText)(&empty), true},
		{pgtype.ByteaOID, payloadOrNull(&blob), true},
		{pgtype.ByteaOID, payloadOrNull(&zero), true},
		{pgtype.TimestamptzOID, timeOrNull(&at), true},
		{pgtype.TimestamptzOID, pgTime(at), false},
	} {
		want, err := types.Encode(c.oid, pgx.BinaryFormatCode, c.value, []byte{})
		if err != nil {
			t.Fatalf("%T for %d: %v", c.value, c.oid, err)
		}
		got, ours := appendValue([]byte{}, c.oid, c.value)
		if ours != c.ours || ours && string(got) != string(want) {
			t.Errorf("%T for %d: encoded (%v) as\n%x, pgx says\n%x", c.value, c.oid, ours, got, want)
		}
	}
	var none []byte
	var never time.Time
	if payloadOrNull(&none) != nil || timeOrNull(&never) != nil {
		t.Error("a nil payload or a zero time is not NULL")
	}
}

// A pipeline with values larger than the buffers arrives whole, and so does the next one.
func TestBuffersGrowAndShrink(t *testing.T) {
	s := open(t, "cache_statement")
	for _, size := range []int{10, 3 * maxKeptBuffer, 10, 5000} {
		start := &store.StartWrite{Run: running(uuid.New(), now(t, s))}
		start.Run.Input = make([]byte, size)
		start.Run.Input[size-1] = 7
		commit(t, s, &store.Batch{Starts: []*store.StartWrite{start}})
		runs, err := s.GetRuns(t.Context(), []store.RunRef{{UUIDOrName: start.Run.UUID.String()}})
		if err != nil {
			t.Fatal(err)
		}
		if string(runs[0].Input) != string(start.Run.Input) {
			t.Errorf("an input of %d bytes came back as %d others", size, len(runs[0].Input))
		}
	}
	conn, err := s.enginePool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if own := connStateOf(conn.Conn()); cap(own.encodedArgs) > maxKeptBuffer || cap(own.writeBuffer.buf) > maxKeptBuffer {
		t.Errorf("buffers of %d and %d bytes are kept after a large value", cap(own.encodedArgs), cap(own.writeBuffer.buf))
	}
}

// If the server has lost a prepared statement, the connection is closed, but the store keeps working.
func TestPreparedStatementsThatAreGone(t *testing.T) {
	s := open(t, "cache_statement")
	if _, err := s.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pool := range []*pgxpool.Pool{s.enginePool, s.heartbeatPool} {
		for _, conn := range pool.AcquireAllIdle(t.Context()) {
			if _, err := conn.Exec(t.Context(), "DEALLOCATE ALL", pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Error(err)
			}
			conn.Release()
		}
	}
	failures := 0
	for range 2 * (maxEngineConns + maxHeartbeatConns) {
		if _, err := s.Now(t.Context()); err != nil {
			failures++
		}
	}
	if failures == 0 || failures > maxHeartbeatConns {
		t.Errorf("%d of the calls failed after the statements were gone, want one for each connection that there was", failures)
	}
}

// tracer counts batches.
type tracer struct {
	batches atomic.Int64
}

func (c *tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.batches.Add(1)
	return ctx
}
func (*tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func (*tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (*tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A tracer on the pool's connections sees the statements of the engine.
func TestATracerSeesTheStoresBatches(t *testing.T) {
	cfg, err := pgxpool.ParseConfig(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	seen := new(tracer)
	cfg.ConnConfig.Tracer = seen
	s := openOver(t, cfg)
	before := seen.batches.Load()
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{{Run: running(uuid.New(), now(t, s))}}})
	if seen.batches.Load() == before {
		t.Error("a commit went past the pool's tracer")
	}
}

// The first argument on a new connection may be an empty text.
func TestEmptyTextIsNotNull(t *testing.T) {
	s := new(connState)
	p := &preparedStatement{StatementDescription: &pgconn.StatementDescription{ParamOIDs: []uint32{pgtype.TextOID, pgtype.TextOID}}}
	if err := s.encodeArgs(pgtype.NewMap(), p, []any{"", nil}); err != nil {
		t.Fatal(err)
	}
	if s.argValues[0] == nil || s.argValues[1] != nil {
		t.Errorf("encoded as %v, want an empty text and NULL", s.argValues)
	}
}
