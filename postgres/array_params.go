package postgres

import (
	"encoding/binary"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// An arrayParam is one array parameter of a statement for many items. It has n values, which at returns during
// encoding, so that no values are copied into slices first. On the store's own connections the arrayParam encodes itself. On all
// other connections, for example in a user's transaction, pgx encodes it. pgx gets texts, times, payloads and UUIDs as pointers into
// the items, so that they are not boxed.
type arrayParam interface {
	// encode appends the array in the protocol's binary form.
	encode(b []byte) []byte
}

type (
	uuidArray struct {
		length  int
		valueAt func(int) *uuid.UUID // nil is NULL
	}
	textArray struct {
		length  int
		valueAt func(int) *string // nil is NULL
	}
	byteaArray struct {
		length  int
		valueAt func(int) *[]byte // a nil slice is NULL, an empty one is not
	}
	timeArray struct {
		length  int
		valueAt func(int) *time.Time // zero is NULL
	}
	int2Array struct {
		length  int
		valueAt func(int) int16
	}
	int4Array struct {
		length  int
		valueAt func(int) int32
	}
	int8Array struct {
		length  int
		valueAt func(int) int64
	}
	epochArray struct {
		length  int
		valueAt func(int) store.Epoch
	}
	boolArray struct {
		length  int
		valueAt func(int) bool
	}
)

// nullIfAllZero returns the column, or NULL for the whole array if each of its values is NULL, so that the
// server need not read an array. It is for columns that are NULL in most rows.
func (c byteaArray) nullIfAllZero() any {
	for i := range c.length {
		if *c.valueAt(i) != nil {
			return c
		}
	}
	return nil
}

// nullIfAllZero returns NULL if each value is zero, and the array otherwise.
func (c timeArray) nullIfAllZero() any {
	for i := range c.length {
		if !c.valueAt(i).IsZero() {
			return c
		}
	}
	return nil
}

// nullIfAllZero returns NULL if each value is zero, and the array otherwise.
func (c int8Array) nullIfAllZero() any {
	for i := range c.length {
		if c.valueAt(i) != 0 {
			return c
		}
	}
	return nil
}

// nullIfAllZero returns NULL if each value is false. It is for conditions, in which NULL counts as false.
func (c boolArray) nullIfAllZero() any {
	for i := range c.length {
		if c.valueAt(i) {
			return c
		}
	}
	return nil
}

// registerParameterTypes tells pgx the types of the columns for modes in which the server has not described the
// parameters.
func registerParameterTypes(m *pgtype.Map) {
	if _, ok := m.TypeForValue(uuidArray{}); ok {
		return
	}
	m.RegisterDefaultPgType(uuidArray{}, "_uuid")
	m.RegisterDefaultPgType(textArray{}, "_text")
	m.RegisterDefaultPgType(byteaArray{}, "_bytea")
	m.RegisterDefaultPgType(timeArray{}, "_timestamptz")
	m.RegisterDefaultPgType(int2Array{}, "_int2")
	m.RegisterDefaultPgType(int4Array{}, "_int4")
	m.RegisterDefaultPgType(int8Array{}, "_int8")
	m.RegisterDefaultPgType(epochArray{}, "_int8")
	m.RegisterDefaultPgType(boolArray{}, "_bool")
	m.RegisterDefaultPgType((*uuidValue)(nil), "uuid")
	m.RegisterDefaultPgType((*nullableText)(nil), "text")
	m.RegisterDefaultPgType((*blobValue)(nil), "bytea")
	m.RegisterDefaultPgType((*timeValue)(nil), "timestamptz")
}

// arrayDimensions returns the dimensions of a PostgreSQL array of n elements: one dimension that begins at index 1, or none if the array is empty.
func arrayDimensions(n int) []pgtype.ArrayDimension {
	if n == 0 {
		return []pgtype.ArrayDimension{}
	}
	return []pgtype.ArrayDimension{{Length: int32(n), LowerBound: 1}}
}

func (c uuidArray) Dimensions() []pgtype.ArrayDimension  { return arrayDimensions(c.length) }
func (c textArray) Dimensions() []pgtype.ArrayDimension  { return arrayDimensions(c.length) }
func (c byteaArray) Dimensions() []pgtype.ArrayDimension { return arrayDimensions(c.length) }
func (c timeArray) Dimensions() []pgtype.ArrayDimension  { return arrayDimensions(c.length) }
func (c int2Array) Dimensions() []pgtype.ArrayDimension  { return arrayDimensions(c.length) }
func (c int4Array) Dimensions() []pgtype.ArrayDimension  { return arrayDimensions(c.length) }
func (c int8Array) Dimensions() []pgtype.ArrayDimension  { return arrayDimensions(c.length) }
func (c epochArray) Dimensions() []pgtype.ArrayDimension { return arrayDimensions(c.length) }
func (c boolArray) Dimensions() []pgtype.ArrayDimension  { return arrayDimensions(c.length) }

func (uuidArray) IndexType() any  { return (*uuidValue)(nil) }
func (textArray) IndexType() any  { return (*nullableText)(nil) }
func (byteaArray) IndexType() any { return (*blobValue)(nil) }
func (timeArray) IndexType() any  { return (*timeValue)(nil) }
func (int2Array) IndexType() any  { return int16(0) }
func (int4Array) IndexType() any  { return int32(0) }
func (int8Array) IndexType() any  { return int64(0) }
func (epochArray) IndexType() any { return int64(0) }
func (boolArray) IndexType() any  { return false }

func (c int2Array) Index(i int) any  { return c.valueAt(i) }
func (c int4Array) Index(i int) any  { return c.valueAt(i) }
func (c int8Array) Index(i int) any  { return c.valueAt(i) }
func (c epochArray) Index(i int) any { return c.valueAt(i).EncodeInt64() }
func (c boolArray) Index(i int) any  { return c.valueAt(i) }

// appendValue appends a single value in the protocol's binary form, without the allocations of pgx. It
// reports false if it does not know the type, or if the parameter has another one; then pgx encodes it.
func appendValue(b []byte, oid uint32, arg any) ([]byte, bool) {
	switch v := arg.(type) {
	case bool:
		if oid == pgtype.BoolOID {
			return appendBool(b, v), true
		}
	case int16:
		if oid == pgtype.Int2OID {
			return binary.BigEndian.AppendUint16(b, uint16(v)), true
		}
	case int32:
		if oid == pgtype.Int4OID {
			return binary.BigEndian.AppendUint32(b, uint32(v)), true
		}
	case int64:
		if oid == pgtype.Int8OID {
			return binary.BigEndian.AppendUint64(b, uint64(v)), true
		}
	case *uuidValue:
		if oid == pgtype.UUIDOID {
			return append(b, v[:]...), true
		}
	case *nullableText:
		if oid == pgtype.TextOID {
			return append(b, *v...), true
		}
	case *blobValue:
		if oid == pgtype.ByteaOID {
			return append(b, *v...), true
		}
	case *timeValue:
		if oid == pgtype.TimestamptzOID {
			return appendTime(b, (*time.Time)(v)), true
		}
	}
	return b, false
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendTime(b []byte, v *time.Time) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(v.UnixMicro()-postgresEpochMicros))
}

func (c uuidArray) Index(i int) any {
	if v := c.valueAt(i); v != nil {
		return (*uuidValue)(v)
	}
	return nil
}

func (c textArray) Index(i int) any {
	if v := c.valueAt(i); v != nil {
		return (*nullableText)(v)
	}
	return nil
}

func (c byteaArray) Index(i int) any {
	if v := c.valueAt(i); *v != nil {
		return (*blobValue)(v)
	}
	return nil
}

func (c timeArray) Index(i int) any {
	if v := c.valueAt(i); !v.IsZero() {
		return (*timeValue)(v)
	}
	return nil
}

func (c uuidArray) encode(b []byte) []byte {
	b = appendArrayHeader(b, pgtype.UUIDOID, c.length)
	for i := range c.length {
		if v := c.valueAt(i); v == nil {
			b = appendArrayNull(b)
		} else {
			b = appendArrayElement(b, v[:])
		}
	}
	return b
}

func (c textArray) encode(b []byte) []byte {
	b = appendArrayHeader(b, pgtype.TextOID, c.length)
	for i := range c.length {
		if v := c.valueAt(i); v == nil {
			b = appendArrayNull(b)
		} else {
			b = appendArrayElement(b, *v)
		}
	}
	return b
}

func (c byteaArray) encode(b []byte) []byte {
	b = appendArrayHeader(b, pgtype.ByteaOID, c.length)
	for i := range c.length {
		if v := c.valueAt(i); *v == nil {
			b = appendArrayNull(b)
		} else {
			b = appendArrayElement(b, *v)
		}
	}
	return b
}

// postgresEpochMicros is the server's zero time, 2000-01-01, in microseconds of Unix time.
const postgresEpochMicros = 946_684_800_000_000

func (c timeArray) encode(b []byte) []byte {
	b = appendArrayHeader(b, pgtype.TimestamptzOID, c.length)
	for i := range c.length {
		if v := c.valueAt(i); v.IsZero() {
			b = appendArrayNull(b)
		} else {
			b = appendTime(binary.BigEndian.AppendUint32(b, 8), v)
		}
	}
	return b
}

func (c int2Array) encode(b []byte) []byte {
	b = appendArrayHeader(b, pgtype.Int2OID, c.length)
	for i := range c.length {
		b = binary.BigEndian.AppendUint32(b, 2)
		b = binary.BigEndian.AppendUint16(b, uint16(c.valueAt(i)))
	}
	return b
}

func (c int4Array) encode(b []byte) []byte {
	b = appendArrayHeader(b, pgtype.Int4OID, c.length)
	for i := range c.length {
		b = binary.BigEndian.AppendUint32(b, 4)
		b = binary.BigEndian.AppendUint32(b, uint32(c.valueAt(i)))
	}
	return b
}

func (c int8Array) encode(b []byte) []byte {
	b = appendArrayHeader(b, pgtype.Int8OID, c.length)
	for i := range c.length {
		b = binary.BigEndian.AppendUint32(b, 8)
		b = binary.BigEndian.AppendUint64(b, uint64(c.valueAt(i)))
	}
	return b
}

func (c epochArray) encode(b []byte) []byte {
	b = appendArrayHeader(b, pgtype.Int8OID, c.length)
	for i := range c.length {
		b = binary.BigEndian.AppendUint32(b, 8)
		b = binary.BigEndian.AppendUint64(b, uint64(c.valueAt(i).EncodeInt64()))
	}
	return b
}

func (c boolArray) encode(b []byte) []byte {
	b = appendArrayHeader(b, pgtype.BoolOID, c.length)
	for i := range c.length {
		b = appendBool(binary.BigEndian.AppendUint32(b, 1), c.valueAt(i))
	}
	return b
}
