package engine

import (
	"reflect"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/store"
)

// sharedJournalKey identifies the journals that engines of one store may share.
type sharedJournalKey struct {
	store         store.Store // the store that was passed to New, because a wrapper may commit in its own way
	patience      time.Duration
	meterProvider metric.MeterProvider // its meters count the flushes
}

// findOrCreateJournal returns the journal for the engine's store. Engines of this process that use the same store share a journal, because
// a write costs less if more writes share its transaction. Engines with a codec or test hooks have a journal of their own, because they
// commit in ways of their own.
func (e *Engine) findOrCreateJournal() *journal.Journal {
	create := func() any {
		t := e.telemetry
		j := journal.New(e.store.Commit, func(f journal.FlushStats) { t.RecordFlush(f.Rows, f.Bytes, f.Duration) }, e.cfg.Patience)
		if _, serial := e.rawStore.(store.SerialCommitter); serial {
			j.UseSingleWriter()
		}
		return j
	}
	sharer, meters := e.sharedStoreOrNil(), e.telemetry.MeterProvider()
	if sharer == nil || !reflect.TypeOf(meters).Comparable() {
		return create().(*journal.Journal)
	}
	return sharer.GetOrCreateSharedValue(sharedJournalKey{e.store, e.cfg.Patience, meters}, create).(*journal.Journal)
}

// sharedStoreOrNil returns the store if the engine shares its journal and its claims with other engines, or nil.
func (e *Engine) sharedStoreOrNil() store.ValueSharer {
	if sharer, shares := e.store.(store.ValueSharer); shares && e.codecStore == nil && e.testHooks == nil && reflect.TypeOf(e.store).Comparable() {
		return sharer
	}
	return nil
}
