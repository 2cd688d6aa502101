package postgres

import (
	"sync"
	"time"
)

// connWarningInterval is the time between two warnings that the server has refused a connection.
const connWarningInterval = time.Minute

// tooManyConnsWarning is the warning that workers log after the server has refused a connection because of its limit. Calls still succeed with
// the open connections, so no error would show it. The zero value is ready for use.
type tooManyConnsWarning struct {
	mu      sync.Mutex
	text    string // the warning that no worker has taken yet
	takenAt time.Time
}

// recordRefusal records that the server has refused a connection, and the consequence.
func (w *tooManyConnsWarning) recordRefusal(consequence string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = "the server has no connection left: " + consequence + "; raise max_connections, or let fewer workers or smaller pools use it"
}

// takeWarning returns the warning, or an empty text if there is none or one was taken within connWarningInterval.
func (w *tooManyConnsWarning) takeWarning(now time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.text == "" || !w.takenAt.IsZero() && now.Sub(w.takenAt) < connWarningInterval {
		return ""
	}
	text := w.text
	w.text, w.takenAt = "", now
	return text
}
