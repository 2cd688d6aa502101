package history

import (
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// ParseExportedStep returns the kind and the status that the database row of a checkpoint has, from the words that an export shows for it, and when the row
// ended. It reports false if it does not know the words. The rows of a sleep and of a Map are complete from their beginning. A row that the run has
// left without an outcome keeps the status that it had when the run or its branch ended.
func ParseExportedStep(kindWord, statusWord string, hasError bool, startedAt, endedAt time.Time) (kind store.StepKind, status store.StepStatus, ended time.Time, known bool) {
	if kind, known = parseWord(store.KindStep, kindWord); !known {
		return kind, status, ended, false
	}
	status, known = parseWord(store.StepStarted, statusWord)
	cancelled := statusWord == StatusCancelled
	switch {
	case (kind == store.KindSleep || kind == store.KindMap) && (known || cancelled):
		return kind, store.StepCompleted, startedAt, true
	case cancelled && hasError:
		return kind, store.StepBackoff, startedAt, true
	case cancelled:
		return kind, store.StepStarted, time.Time{}, true
	}
	return kind, status, endedAt, known
}

// parseWord returns the value whose String method returns the word. It tries the values from first on.
func parseWord[T interface {
	~int16
	String() string
}](first T, word string) (T, bool) {
	for v := first; v.String() != T(-1).String(); v++ {
		if v.String() == word {
			return v, true
		}
	}
	return 0, false
}
