package engine

import (
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// StartSpans holds the trace spans of prepared starts. Each span ends with the outcome of its start, so no span names a run that was not
// created. The zero value of StartSpans stands for starts that are not traced.
type StartSpans struct {
	spans []trace.Span // one for each start, nil if the span does not record; empty: no start is traced
	// Uncommitted says that the caller's transaction, which creates the runs, has not committed yet.
	Uncommitted bool
}

// addSpan stores the span of start i of n, if the span records.
func (s *StartSpans) addSpan(i, n int, span trace.Span) {
	if !span.IsRecording() {
		return
	}
	if s.spans == nil {
		s.spans = make([]trace.Span, n)
	}
	s.spans[i] = span
}

// EndFailed ends the trace spans of starts that were not committed.
func (s *StartSpans) EndFailed(err error) {
	for _, span := range s.spans {
		if span == nil {
			continue
		}
		telemetry.EndStart(span, telemetry.StartRefused, uuid.Nil, "", errorType(err))
	}
}

// endSpan ends the span of one start. conflicting is not nil if the run exists and was started
// differently.
func (s *StartSpans) endSpan(i int, start *store.StartWrite, conflicting error) {
	if s.spans == nil || s.spans[i] == nil {
		return
	}
	switch span := s.spans[i]; {
	case start.Outcome == store.Written && s.Uncommitted:
		telemetry.EndStart(span, telemetry.StartInTransaction, uuid.Nil, "", "")
	case start.Outcome == store.Written:
		telemetry.EndStart(span, telemetry.StartCreated, start.Run.UUID, naming.Display(start.Run.Name), "")
	case start.ExistingRun == nil:
		telemetry.EndStart(span, telemetry.StartRefused, uuid.Nil, "", "")
	case conflicting != nil:
		telemetry.EndStart(span, telemetry.StartRefused, start.ExistingRun.UUID, naming.Display(start.ExistingRun.Name), errorType(conflicting))
	default:
		telemetry.EndStart(span, telemetry.StartExisting, start.ExistingRun.UUID, naming.Display(start.ExistingRun.Name), "")
	}
}

// errorType returns the error.type attribute for an error that is not recorded.
func errorType(err error) string {
	if FailureFromError == nil {
		return telemetry.OtherLabel
	}
	return FailureFromError(err).ErrorType()
}
