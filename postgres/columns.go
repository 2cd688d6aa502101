package postgres

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// A column is one array parameter of a plural statement: n values, read out of the
// items by at while pgx encodes them. So nothing is copied into slices first; and since
// every value goes to pgx as a pointer into its item, nothing is boxed either.
type (
	uuids struct {
		n  int
		at func(int) *uuid.UUID // nil is NULL
	}
	texts struct {
		n  int
		at func(int) *string // nil is NULL
	}
	blobs struct {
		n  int
		at func(int) *[]byte // a nil slice is NULL, an empty one is not
	}
	times struct {
		n  int
		at func(int) *time.Time // zero is NULL
	}
	int2s struct {
		n  int
		at func(int) int16
	}
	int4s struct {
		n  int
		at func(int) int32
	}
	bools struct {
		n  int
		at func(int) bool
	}
)

// registerColumns names the columns' types for modes in which the server has not told
// pgx the types of the parameters.
func registerColumns(m *pgtype.Map) {
	if _, ok := m.TypeForValue(uuids{}); ok {
		return
	}
	m.RegisterDefaultPgType(uuids{}, "_uuid")
	m.RegisterDefaultPgType(texts{}, "_text")
	m.RegisterDefaultPgType(blobs{}, "_bytea")
	m.RegisterDefaultPgType(times{}, "_timestamptz")
	m.RegisterDefaultPgType(int2s{}, "_int2")
	m.RegisterDefaultPgType(int4s{}, "_int4")
	m.RegisterDefaultPgType(bools{}, "_bool")
}

func dimensions(n int) []pgtype.ArrayDimension {
	if n == 0 {
		return []pgtype.ArrayDimension{}
	}
	return []pgtype.ArrayDimension{{Length: int32(n), LowerBound: 1}}
}

func (c uuids) Dimensions() []pgtype.ArrayDimension { return dimensions(c.n) }
func (c texts) Dimensions() []pgtype.ArrayDimension { return dimensions(c.n) }
func (c blobs) Dimensions() []pgtype.ArrayDimension { return dimensions(c.n) }
func (c times) Dimensions() []pgtype.ArrayDimension { return dimensions(c.n) }
func (c int2s) Dimensions() []pgtype.ArrayDimension { return dimensions(c.n) }
func (c int4s) Dimensions() []pgtype.ArrayDimension { return dimensions(c.n) }
func (c bools) Dimensions() []pgtype.ArrayDimension { return dimensions(c.n) }

func (uuids) IndexType() any { return (*uuidValue)(nil) }
func (texts) IndexType() any { return (*textValue)(nil) }
func (blobs) IndexType() any { return (*blobValue)(nil) }
func (times) IndexType() any { return (*timeValue)(nil) }
func (int2s) IndexType() any { return int16(0) }
func (int4s) IndexType() any { return int32(0) }
func (bools) IndexType() any { return false }

func (c int2s) Index(i int) any { return c.at(i) }
func (c int4s) Index(i int) any { return c.at(i) }
func (c bools) Index(i int) any { return c.at(i) }

func (c uuids) Index(i int) any {
	if v := c.at(i); v != nil {
		return (*uuidValue)(v)
	}
	return nil
}

func (c texts) Index(i int) any {
	if v := c.at(i); v != nil {
		return (*textValue)(v)
	}
	return nil
}

func (c blobs) Index(i int) any {
	if v := c.at(i); *v != nil {
		return (*blobValue)(v)
	}
	return nil
}

func (c times) Index(i int) any {
	if v := c.at(i); !v.IsZero() {
		return (*timeValue)(v)
	}
	return nil
}

// The values as pgx reads and writes them.
type (
	uuidValue uuid.UUID
	textValue string
	blobValue []byte
	timeValue time.Time
)

func (v *uuidValue) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: *v, Valid: true}, nil
}

func (v *uuidValue) ScanUUID(u pgtype.UUID) error {
	*v = u.Bytes
	return nil
}

func (v *textValue) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: string(*v), Valid: true}, nil
}

func (v *blobValue) BytesValue() ([]byte, error) { return *v, nil }

func (v *timeValue) TimestamptzValue() (pgtype.Timestamptz, error) {
	return pgtype.Timestamptz{Time: time.Time(*v), Valid: true}, nil
}

// ScanTimestamptz reads NULL as the zero time.
func (v *timeValue) ScanTimestamptz(t pgtype.Timestamptz) error {
	*v = timeValue{}
	if t.Valid {
		*v = timeValue(t.Time.UTC())
	}
	return nil
}

func nullUUID(u *uuid.NullUUID) *uuid.UUID {
	if !u.Valid {
		return nil
	}
	return &u.UUID
}

// nullText is for columns in which an empty text is NULL.
func nullText(s *string) *string {
	if *s == "" {
		return nil
	}
	return s
}

func one(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

func instant(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}
