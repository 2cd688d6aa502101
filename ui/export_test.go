package ui

import "net/http"

// Patterns returns the patterns of all routes of a handler.
func Patterns(h http.Handler) []string { return h.(*server).patterns }
