package engine

import (
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// StartSpans are the spans of prepared starts. They end with what became of the starts, so that none
// names a run that was not created. The zero value is of starts that nobody traces.
type StartSpans struct {
	spans []trace.Span // one for each start, nil where it does not record; or none at all
	// Open says that the caller's transaction, which creates the runs, has not committed yet.
	Open bool
}

// keep takes the span of start i of n.
func (s *StartSpans) keep(i, n int, span trace.Span) {
	if !span.IsRecording() {
		return
	}
	if s.spans == nil {
		s.spans = make([]trace.Span, n)
	}
	s.spans[i] = span
}

// Refused ends the spans of starts that were not committed.
func (s *StartSpans) Refused(err error) {
	for _, span := range s.spans {
		if span == nil {
			continue
		}
		telemetry.EndStart(span, telemetry.StartRefused, uuid.Nil, "", errorType(err))
	}
}

// answered ends the span of one start, which is conflicting if it was another's.
func (s *StartSpans) answered(i int, start *store.Start, conflicting error) {
	if s.spans == nil || s.spans[i] == nil {
		return
	}
	switch span := s.spans[i]; {
	case start.Outcome == store.Written && s.Open:
		telemetry.EndStart(span, telemetry.StartInTransaction, uuid.Nil, "", "")
	case start.Outcome == store.Written:
		telemetry.EndStart(span, telemetry.StartCreated, start.Run.ID, Shown(start.Run.Name), "")
	case start.Existing == nil:
		telemetry.EndStart(span, telemetry.StartRefused, uuid.Nil, "", "")
	case conflicting != nil:
		telemetry.EndStart(span, telemetry.StartRefused, start.Existing.ID, Shown(start.Existing.Name), errorType(conflicting))
	default:
		telemetry.EndStart(span, telemetry.StartExisting, start.Existing.ID, Shown(start.Existing.Name), "")
	}
}

// errorType is the error.type of an error that is in no record.
func errorType(err error) string {
	if FailureOf == nil {
		return telemetry.Other
	}
	return FailureOf(err).ErrorType()
}
