package postgres

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// These types convert values for pgx.
type (
	uuidValue    uuid.UUID
	nullableText string
	blobValue    []byte
	timeValue    time.Time

	epochValue store.Epoch
)

func (v *uuidValue) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: *v, Valid: true}, nil
}

func (v *uuidValue) ScanUUID(u pgtype.UUID) error {
	*v = u.Bytes
	return nil
}

func (v *nullableText) TextValue() (pgtype.Text, error) {
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

// ScanInt64 reads NULL as the zero epoch.
func (v *epochValue) ScanInt64(n pgtype.Int8) error {
	*v = epochValue(store.DecodeEpoch(n.Int64))
	return nil
}

// uuidOrNull converts a UUID to the parameter of a statement: nil, for NULL, if the UUID is not valid.
func uuidOrNull(u *uuid.NullUUID) *uuid.UUID {
	if !u.Valid {
		return nil
	}
	return &u.UUID
}

// textOrNull returns nil for an empty text. It is for columns that store an empty text as NULL.
func textOrNull(s *string) *string {
	if *s == "" {
		return nil
	}
	return s
}

// payloadOrNull returns the payload as a parameter, or NULL if it is nil. The parameter is a pointer, so
// that it needs no allocation.
func payloadOrNull(v *[]byte) any {
	if *v == nil {
		return nil
	}
	return (*blobValue)(v)
}

// timeOrNull returns the time as a parameter, or NULL if it is zero.
func timeOrNull(v *time.Time) any {
	if v.IsZero() {
		return nil
	}
	return (*timeValue)(v)
}

func timeoutOrNull(d time.Duration) any {
	if d == 0 {
		return nil
	}
	return d.Microseconds()
}

func pgUUID(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

func pgNullUUID(id uuid.NullUUID) pgtype.UUID { return pgtype.UUID{Bytes: id.UUID, Valid: id.Valid} }

func pgTime(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}

// runStateFromColumns returns the state of a run from its columns, which are NULL if there is no such run.
func runStateFromColumns(status pgtype.Int2, epoch store.Epoch, control pgtype.Int2) store.RunState {
	return store.RunState{Found: status.Valid, Status: store.Status(status.Int16), Epoch: epoch, Control: store.ControlBits(control.Int16)}
}
