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

// connState is the state of one of the store's own connections, on which settings and prepared statements last as long as the
// connection. It contains the prepared statements, and the buffers for the messages to the server. pgx would allocate these buffers
// for every pipeline and grow them by doubling, which was half of all bytes that a busy process allocated.
type connState struct {
	eras             map[*rewindDetector]uint64 // the era of the database, for each store that has used the connection; see rewind_detector.go
	sendsBeginCommit bool                       // pipelines contain BEGIN and COMMIT, because a Citus stands between
	traced           bool                       // the connection has a tracer: pgx traces only its own batches, so the store uses these
	prepared         map[string]*preparedStatement
	encodedArgs      []byte // the arguments of one statement
	argValues        [][]byte
	writeBuffer      reusedBuffer // the messages of one pipeline
}

// preparedStatement is a prepared statement of one connection.
type preparedStatement struct {
	*pgconn.StatementDescription
	resultFormats []int16 // the format of each column of the result
}

// maxKeptBuffer is the size in bytes of the largest buffer that a connection keeps after a pipeline.
const maxKeptBuffer = 1 << 20

// maxPreparedStatements is how many prepared statements a connection keeps, each of which takes memory in the server. Stores of many
// schemas that share connections may need more.
const maxPreparedStatements = 1000

// sessionKey is the key under which a connection keeps its connState.
const sessionKey = "durable.session"

// connStateOf returns the connection's connState, or nil if it has none.
func connStateOf(conn *pgx.Conn) *connState {
	s, _ := conn.PgConn().CustomData()[sessionKey].(*connState)
	return s
}

// binaryFormat is the format of every argument.
var binaryFormat = []int16{pgx.BinaryFormatCode}

// sendBatch prepares the statements that are new to the connection, and sends all statements as one pipeline,
// which is one transaction.
func (s *connState) sendBatch(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) (*pipelineResults, error) {
	if len(s.prepared) > maxPreparedStatements {
		if err := conn.DeallocateAll(ctx); err != nil {
			return nil, err
		}
		clear(s.prepared)
	}
	f := &pipelineResults{typeMap: conn.TypeMap(), statements: make([]*preparedStatement, len(batch.QueuedQueries))}
	for i, q := range batch.QueuedQueries {
		var err error
		if f.statements[i], err = s.prepare(ctx, conn, q.SQL); err != nil {
			return nil, err
		}
	}
	f.pipe = conn.PgConn().StartPipeline(ctx)
	conn.PgConn().Frontend().Send(&s.writeBuffer)
	size := 0
	for i, q := range batch.QueuedQueries {
		if err := s.encodeArgs(f.typeMap, f.statements[i], q.Arguments); err != nil {
			_ = f.pipe.Close() // this closes the connection, because half a pipeline is buffered
			return nil, err
		}
		size += len(s.encodedArgs) + messageOverhead(f.statements[i].StatementDescription)
		f.pipe.SendQueryStatement(f.statements[i].StatementDescription, s.argValues, binaryFormat, f.statements[i].resultFormats)
	}
	err := f.pipe.Sync()
	s.writeBuffer.reserveSize(size)
	if cap(s.encodedArgs) > maxKeptBuffer {
		s.encodedArgs, s.argValues = nil, nil
	}
	if err != nil {
		_ = f.pipe.Close() // Close returns the same error
		return nil, err
	}
	return f, nil
}

// prepare returns the prepared statement for a text. It prepares it at the first use.
func (s *connState) prepare(ctx context.Context, conn *pgx.Conn, sql string) (*preparedStatement, error) {
	if p := s.prepared[sql]; p != nil {
		return p, nil
	}
	description, err := conn.Prepare(ctx, sql, sql)
	if err != nil {
		return nil, err
	}
	p := &preparedStatement{StatementDescription: description}
	for _, field := range description.Fields {
		p.resultFormats = append(p.resultFormats, conn.TypeMap().FormatCodeForOID(field.DataTypeOID))
	}
	s.prepared[sql] = p
	return p, nil
}

// encodeArgs encodes the arguments of one statement into s.argValues.
func (s *connState) encodeArgs(types *pgtype.Map, p *preparedStatement, args []any) error {
	if len(args) != len(p.ParamOIDs) {
		return fmt.Errorf("failed to encode: %d arguments for %d parameters of %q", len(args), len(p.ParamOIDs), p.SQL)
	}
	if s.encodedArgs == nil {
		s.encodedArgs = make([]byte, 0, 512) // not nil: an empty text appended to nil would be sent as NULL
	}
	s.encodedArgs, s.argValues = s.encodedArgs[:0], s.argValues[:0]
	for i, arg := range args {
		from := len(s.encodedArgs)
		if arg == nil {
			s.argValues = append(s.argValues, nil)
			continue
		}
		if c, ok := arg.(arrayParam); ok {
			s.encodedArgs = c.encode(s.encodedArgs)
		} else if appended, ok := appendValue(s.encodedArgs, p.ParamOIDs[i], arg); ok {
			s.encodedArgs = appended
		} else {
			encoded, err := types.Encode(p.ParamOIDs[i], pgx.BinaryFormatCode, arg, s.encodedArgs)
			if err != nil {
				return fmt.Errorf("failed to encode argument %d of %q: %w", i+1, p.SQL, err)
			}
			if encoded == nil { // NULL
				s.argValues = append(s.argValues, nil)
				continue
			}
			s.encodedArgs = encoded
		}
		// Earlier values stay valid in the old buffer if append has allocated a new one.
		s.argValues = append(s.argValues, s.encodedArgs[from:len(s.encodedArgs):len(s.encodedArgs)])
	}
	return nil
}

// pipelineResults is a pipeline that was sent. Its results are read in order.
type pipelineResults struct {
	pipe       *pgconn.Pipeline
	typeMap    *pgtype.Map
	statements []*preparedStatement
}

// nextResultReader returns the reader of the next result.
func (f *pipelineResults) nextResultReader() (*pgconn.ResultReader, error) {
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

// Exec implements statementResults.
func (f *pipelineResults) Exec() (pgconn.CommandTag, error) {
	reader, err := f.nextResultReader()
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	return reader.Close()
}

// Query implements statementResults.
func (f *pipelineResults) Query() (pgx.Rows, error) {
	reader, err := f.nextResultReader()
	if err != nil {
		return nil, err
	}
	return pgx.RowsFromResultReader(f.typeMap, reader), nil
}

// Close implements closableResults.
func (f *pipelineResults) Close() error { return f.pipe.Close() }

// reusedBuffer is no message of the protocol. As the first message of a pipeline, it makes pgx encode the following messages into a
// reused buffer. pgx itself drops a large buffer after each write.
type reusedBuffer struct{ buf []byte }

// reserveSize enlarges the buffer for the next pipeline, if size bytes do not fit and do not exceed maxKeptBuffer.
func (l *reusedBuffer) reserveSize(size int) {
	if size > cap(l.buf) && size <= maxKeptBuffer {
		l.buf = make([]byte, 0, size+size/4)
	}
}

// messageOverhead returns an upper bound of the size in bytes of a statement's messages without the values of its arguments.
func messageOverhead(d *pgconn.StatementDescription) int {
	return 64 + len(d.Name) + 4*len(d.ParamOIDs) + 2*len(d.Fields)
}

// Frontend implements pgproto3.FrontendMessage.
func (*reusedBuffer) Frontend() {}

// Decode implements pgproto3.FrontendMessage.
func (*reusedBuffer) Decode([]byte) error { return errors.New("this message is never received") }

// Encode implements pgproto3.FrontendMessage.
func (l *reusedBuffer) Encode(dst []byte) ([]byte, error) {
	if len(dst) > 0 {
		return dst, nil
	}
	return l.buf[:0], nil
}

var _ pgproto3.FrontendMessage = (*reusedBuffer)(nil)

// The binary form of an array contains the number of dimensions, a flag for NULLs, the OID of the element
// type, the number of elements and the index of the first one; then the length and the bytes of each
// element.

func appendArrayHeader(b []byte, element uint32, n int) []byte {
	if n == 0 {
		b = binary.BigEndian.AppendUint32(b, 0)
		b = binary.BigEndian.AppendUint32(b, 0)
		return binary.BigEndian.AppendUint32(b, element)
	}
	for _, v := range [...]uint32{1, 1, element, uint32(n), 1} { // the flag is set even if there are no NULLs
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

const nullLength = ^uint32(0) // the length of NULL

func appendArrayNull(b []byte) []byte { return binary.BigEndian.AppendUint32(b, nullLength) }

func appendArrayElement[T string | []byte](b []byte, v T) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
}
