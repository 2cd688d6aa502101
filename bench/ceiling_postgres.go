package main

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// pgCommitter inserts rows with one prepared statement, which is a transaction of its own and one round
// trip. It encodes the arrays in the protocol's binary format itself, because a library would lower the
// ceiling.
type pgCommitter struct {
	conn   *pgconn.PgConn
	params [4][]byte
}

var binaryFormat = []int16{1, 1, 1, 1}

const ceilingName = "ceiling"

func newPGCommitter(ctx context.Context, address string) (*pgCommitter, error) {
	conn, err := pgconn.Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Prepare(ctx, ceilingName, statement("ceiling.postgres.sql"), nil); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return &pgCommitter{conn: conn}, nil
}

func (k *pgCommitter) commit(rows []*ceilingRow) error {
	p := &k.params
	p[0] = header(p[0][:0], pgtype.Int2OID, len(rows))
	p[1] = header(p[1][:0], pgtype.UUIDOID, len(rows))
	p[2] = header(p[2][:0], pgtype.TextOID, len(rows))
	p[3] = header(p[3][:0], pgtype.ByteaOID, len(rows))
	for _, row := range rows {
		p[0] = binary.BigEndian.AppendUint16(append(p[0], 0, 0, 0, 2), uint16(row.shard))
		p[1] = element(p[1], row.run[:])
		p[2] = element(p[2], row.name)
		p[3] = element(p[3], row.output)
	}
	// A context that cannot end needs no goroutine that watches it.
	result := k.conn.ExecPrepared(context.Background(), ceilingName, p[:], binaryFormat, nil).Read()
	if result.Err != nil {
		return result.Err
	}
	if result.CommandTag.RowsAffected() != int64(len(rows)) {
		return errors.New("the ceiling lost rows")
	}
	return nil
}

func (k *pgCommitter) close() error { return k.conn.Close(context.Background()) }

// header appends the header of an array of one dimension without NULLs.
func header(b []byte, element uint32, n int) []byte {
	for _, v := range [...]uint32{1, 0, element, uint32(n), 1} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func element[T string | []byte](b []byte, v T) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
}
