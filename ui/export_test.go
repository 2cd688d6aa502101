package ui

import (
	"net/http"
	"time"
)

// Patterns returns the patterns of all routes of a handler.
func Patterns(h http.Handler) []string { return h.(*dashboard).patterns }

// SearchFor changes for how long pages search for runs to which no index leads.
func SearchFor(d time.Duration) Option {
	return func(s *dashboard) error { s.searchTime, s.portionTime = d, d; return nil }
}

// StartRound gives a round, as the streams of the handler do.
func StartRound(h http.Handler) string { return h.(*dashboard).hub.rounds.startRound() }

// Clock changes the clock of the process that serves the pages.
func Clock(now func() time.Time) Option {
	return func(s *dashboard) error { s.now = now; return nil }
}
