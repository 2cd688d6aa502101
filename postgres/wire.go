package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// session is what a connection of the store's own keeps, if its settings and its statements
// last: what it has prepared, and the buffers in which what goes to the server is put
// together. pgx would make these anew for every pipeline, from nothing, by doubling: they were
// half of all the bytes that a busy process allocated.
type session struct {
	era      uint64 // of the database; see timeline.go
	traced   bool   // pgx tells a tracer of its own batches only, so these are used
	prepared map[string]*prepared
	args     []byte // the arguments of one statement
	values   [][]byte
	wire     lent // the messages of one pipeline
}

// prepared is a statement of one connection.
type prepared struct {
	*pgconn.StatementDescription
	results []int16 // the format of each column answered
}

// mostKept is the largest buffer that a connection keeps after a pipeline with large values.
const mostKept = 1 << 20

// sessionKey is where a connection has its session, in its own data.
const sessionKey = "durable.session"

// sessionOf answers the connection's session, nil if it has none.
func sessionOf(conn *pgx.Conn) *session {
	s, _ := conn.PgConn().CustomData()[sessionKey].(*session)
	return s
}

// binaryFormat is of every argument.
var binaryFormat = []int16{pgx.BinaryFormatCode}

// send prepares what the connection has not prepared yet, and sends all statements as one
// pipeline, so as one transaction.
func (s *session) send(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) (*flight, error) {
	f := &flight{types: conn.TypeMap(), statements: make([]*prepared, len(batch.QueuedQueries))}
	for i, q := range batch.QueuedQueries {
		var err error
		if f.statements[i], err = s.prepare(ctx, conn, q.SQL); err != nil {
			return nil, err
		}
	}
	f.pipe = conn.PgConn().StartPipeline(ctx)
	conn.PgConn().Frontend().Send(&s.wire)
	size := 0
	for i, q := range batch.QueuedQueries {
		if err := s.encode(f.types, f.statements[i], q.Arguments); err != nil {
			_ = f.pipe.Close() // it gives the connection up: half a pipeline is buffered
			return nil, err
		}
		size += len(s.args) + overhead(f.statements[i].StatementDescription)
		f.pipe.SendQueryStatement(f.statements[i].StatementDescription, s.values, binaryFormat, f.statements[i].results)
	}
	err := f.pipe.Sync()
	s.wire.keep(size)
	if cap(s.args) > mostKept {
		s.args, s.values = nil, nil
	}
	if err != nil {
		_ = f.pipe.Close() // it has the same error
		return nil, err
	}
	return f, nil
}

// prepare answers the statement of this text.
func (s *session) prepare(ctx context.Context, conn *pgx.Conn, sql string) (*prepared, error) {
	if p := s.prepared[sql]; p != nil {
		return p, nil
	}
	description, err := conn.Prepare(ctx, sql, sql)
	if err != nil {
		return nil, err
	}
	p := &prepared{StatementDescription: description}
	for _, field := range description.Fields {
		p.results = append(p.results, conn.TypeMap().FormatCodeForOID(field.DataTypeOID))
	}
	s.prepared[sql] = p
	return p, nil
}

// encode puts the arguments of one statement into values.
func (s *session) encode(types *pgtype.Map, p *prepared, args []any) error {
	if len(args) != len(p.ParamOIDs) {
		return fmt.Errorf("failed to encode: %d arguments for %d parameters of %q", len(args), len(p.ParamOIDs), p.SQL)
	}
	if s.args == nil {
		s.args = make([]byte, 0, 512) // not nil: an empty text appended to that would pass for NULL
	}
	s.args, s.values = s.args[:0], s.values[:0]
	for i, arg := range args {
		from := len(s.args)
		if c, ok := arg.(column); ok {
			s.args = c.encode(s.args)
		} else {
			encoded, err := types.Encode(p.ParamOIDs[i], pgx.BinaryFormatCode, arg, s.args)
			if err != nil {
				return fmt.Errorf("failed to encode argument %d of %q: %w", i+1, p.SQL, err)
			}
			if encoded == nil { // NULL
				s.values = append(s.values, nil)
				continue
			}
			s.args = encoded
		}
		// What was put there before stays where it is, also if the buffer has moved since.
		s.values = append(s.values, s.args[from:len(s.args):len(s.args)])
	}
	return nil
}

// A flight is a pipeline on its way. Its results are taken in order.
type flight struct {
	pipe       *pgconn.Pipeline
	types      *pgtype.Map
	statements []*prepared
}

// reader answers the next result.
func (f *flight) reader() (*pgconn.ResultReader, error) {
	result, err := f.pipe.GetResults()
	if err != nil {
		return nil, err
	}
	reader, ok := result.(*pgconn.ResultReader)
	if !ok {
		return nil, fmt.Errorf("a result was expected, not a %T", result)
	}
	return reader, nil
}

// Exec implements results.
func (f *flight) Exec() (pgconn.CommandTag, error) {
	reader, err := f.reader()
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	return reader.Close()
}

// Query implements results.
func (f *flight) Query() (pgx.Rows, error) {
	reader, err := f.reader()
	if err != nil {
		return nil, err
	}
	return pgx.RowsFromResultReader(f.types, reader), nil
}

// Close implements ending.
func (f *flight) Close() error { return f.pipe.Close() }

// lent is no message of the protocol: encoded as the first one of a pipeline, it has those
// that follow put into a buffer that was used before. pgx lets go of a large one once it is
// written.
type lent struct{ buf []byte }

// keep makes room for as many bytes the next time.
func (l *lent) keep(size int) {
	if size > cap(l.buf) && size <= mostKept {
		l.buf = make([]byte, 0, size+size/4)
	}
}

// overhead is the most that the messages of a statement hold beside its arguments' values.
func overhead(d *pgconn.StatementDescription) int {
	return 64 + len(d.Name) + 4*len(d.ParamOIDs) + 2*len(d.Fields)
}

// Frontend implements pgproto3.FrontendMessage.
func (*lent) Frontend() {}

// Decode implements pgproto3.FrontendMessage.
func (*lent) Decode([]byte) error { return errors.New("this message is never received") }

// Encode implements pgproto3.FrontendMessage.
func (l *lent) Encode(dst []byte) ([]byte, error) {
	if len(dst) > 0 {
		return dst, nil
	}
	return l.buf[:0], nil
}

var _ pgproto3.FrontendMessage = (*lent)(nil)

// The binary form of an array: dimensions, whether there are NULLs, the type of the elements,
// their number and the first one's place; then each with its length.

func arrayHeader(b []byte, element uint32, n int) []byte {
	if n == 0 {
		b = binary.BigEndian.AppendUint32(b, 0)
		b = binary.BigEndian.AppendUint32(b, 0)
		return binary.BigEndian.AppendUint32(b, element)
	}
	for _, v := range [...]uint32{1, 1, element, uint32(n), 1} { // NULLs are allowed, not promised
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

const null = ^uint32(0) // the length of NULL

func arrayNull(b []byte) []byte { return binary.BigEndian.AppendUint32(b, null) }

func arrayElement[T string | []byte](b []byte, v T) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
}
