package sqlite

import (
	"database/sql/driver"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Text is bound unchanged. In a UTF-8 file SQLite stores text byte for byte, including NUL and invalid UTF-8, and compares it byte
// for byte (BINARY). So names need no check here; a test verifies that the driver does not change text either.

// bindBytes binds a payload. The driver binds an empty slice as NULL, so an empty payload is bound as an empty text,
// which the statement casts to a blob.
func bindBytes(b []byte) driver.Value {
	switch {
	case b == nil:
		return nil
	case len(b) == 0:
		return ""
	}
	return b
}

// bindTime binds a time as microseconds since 1970, and the zero time as NULL.
func bindTime(t time.Time) driver.Value {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func bindUUID(id uuid.UUID) driver.Value { return id[:] }

func bindNullUUID(id uuid.NullUUID) driver.Value {
	if !id.Valid {
		return nil
	}
	return id.UUID[:]
}

// bindBool binds a boolean as 0 or 1.
func bindBool(b bool) driver.Value {
	if b {
		return int64(1)
	}
	return int64(0)
}

// bindText binds a text, and an empty one as NULL.
func bindText(s string) driver.Value {
	if s == "" {
		return nil
	}
	return s
}

// bindShard binds the shard of a UUID, which is the first column of every key.
func bindShard(id uuid.UUID) driver.Value { return int64(store.ShardOf(id)) }

// checkLength returns an error if the value is longer than SQLite can store.
func checkLength(v driver.Value) error {
	n := 0
	switch v := v.(type) {
	case []byte:
		n = len(v)
	case string:
		n = len(v)
	}
	if n > maxValueBytes {
		return fmt.Errorf("%w: it has %d bytes, SQLite holds at most %d in one value", store.ErrBadData, n, maxValueBytes)
	}
	return nil
}

// columnReader reads the values of one row in order. It keeps the first error, so that callers check it once, after the last
// column.
type columnReader struct {
	values []driver.Value
	err    error
}

func (c *columnReader) next() driver.Value {
	v := c.values[0]
	c.values = c.values[1:]
	return v
}

// skip passes over n columns.
func (c *columnReader) skip(n int) { c.values = c.values[n:] }

func (c *columnReader) recordTypeError(v driver.Value) {
	if c.err == nil {
		c.err = fmt.Errorf("the file holds a %T where durable stores another type", v)
	}
}

func (c *columnReader) text() string {
	switch v := c.next().(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		c.recordTypeError(v)
		return ""
	}
}

func (c *columnReader) int() int64 {
	switch v := c.next().(type) {
	case nil:
		return 0
	case int64:
		return v
	default:
		c.recordTypeError(v)
		return 0
	}
}

// bytes returns nil for NULL and an empty slice for an empty blob.
func (c *columnReader) bytes() []byte {
	switch v := c.next().(type) {
	case nil:
		return nil
	case []byte:
		if v == nil {
			return []byte{}
		}
		return v
	default:
		c.recordTypeError(v)
		return nil
	}
}

func (c *columnReader) time() time.Time {
	switch v := c.next().(type) {
	case nil:
		return time.Time{}
	case int64:
		return time.UnixMicro(v).UTC()
	default:
		c.recordTypeError(v)
		return time.Time{}
	}
}

func (c *columnReader) uuid() uuid.UUID {
	v := c.nullUUID()
	return v.UUID
}

// nullUUID returns an invalid UUID for NULL and for the empty blob, which is the parent of a root run.
func (c *columnReader) nullUUID() (id uuid.NullUUID) {
	b := c.bytes()
	switch len(b) {
	case 0:
	case len(id.UUID):
		id.UUID, id.Valid = uuid.UUID(b), true
	default:
		c.recordTypeError(b)
	}
	return id
}

// runRow is a run with the columns that only this store uses.
type runRow struct {
	store.Run
	woken               bool
	progressAtLastCrash int64 // the progress at the last claim after a crash; see run_progress.sql
}

// scanRun reads the columns of run_by_id.sql and of all statements that return runs.
func scanRun(values []driver.Value) (runRow, error) {
	c := columnReader{values: values}
	var r runRow
	r.UUID = c.uuid()
	r.Parent = c.nullUUID()
	r.Name = c.text()
	r.Workflow = c.text()
	r.Version = c.text()
	r.Queue = c.text()
	r.Priority = int16(c.int())
	r.Status = store.Status(c.int())
	r.Epoch = store.DecodeEpoch(c.int())
	r.Owner = c.nullUUID()
	r.Crashes = int16(min(c.int(), math.MaxInt16))
	r.Input = c.bytes()
	r.Output = c.bytes()
	r.Error = c.bytes()
	r.PauseOrHoldReason = c.text()
	r.Trace = c.text()
	r.CreatedAt = c.time()
	r.StartedAt = c.time()
	r.EndedAt = c.time()
	r.WakeAt = c.time()
	r.Deadline = c.time()
	r.Detached = c.int() != 0
	r.Control = store.ControlBits(c.int())
	r.PausedBy = c.text()
	r.CancelledBy = c.text()
	r.CancelReason = c.text()
	r.PausedAt = c.time()
	r.CancelledAt = c.time()
	r.woken = c.int() != 0
	r.progressAtLastCrash = c.int()
	return r, c.err
}

// scanStep reads the columns of step_by_name.sql and of all statements that return steps.
func scanStep(values []driver.Value) (store.Step, error) {
	c := columnReader{values: values}
	var p store.Step
	p.Run = c.uuid()
	p.Name = c.text()
	p.Kind = store.StepKind(c.int())
	p.Status = store.StepStatus(c.int())
	p.Attempt = int32(c.int())
	p.Epoch = store.DecodeEpoch(c.int())
	p.Output = c.bytes()
	p.Error = c.bytes()
	p.StartedAt = c.time()
	p.EndedAt = c.time()
	p.NextAt = c.time()
	p.Seq = int32(c.int())
	p.Failures = c.bytes()
	return p, c.err
}
