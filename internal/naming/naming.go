// Package naming holds the rules for names: which names and texts a database keeps, how a name contains
// the scopes around it, and how people see it. The root package checks the names that users give, and the
// engine composes and displays the names of durable calls.
package naming

import (
	"strings"

	"github.com/seed8ec063be/durable/internal/store"
)

// Separator stands between a scope and a name in it. Names given by users must not contain control
// characters, so no such name can look like a scope.
const Separator = "\x1f"

// Display returns the name of a step, a wait or a child as people see it: with a slash after each scope,
// and with the slashes of the names escaped, as in "branch/50%25 off%2Feach". Different names have
// different results.
func Display(name string) string { return displayReplacer.Replace(name) }

// ParseDisplay returns the name for which Display returns text.
func ParseDisplay(text string) string { return parseReplacer.Replace(text) }

var (
	displayReplacer = strings.NewReplacer("%", "%25", "/", "%2F", Separator, "/")
	parseReplacer   = strings.NewReplacer("%25", "%", "%2F", "/", "/", Separator)
)

// DisplaySignal returns the name of a signal as people see it. It is the name as given, except for the
// signal that completes a Callback, which is named after its wait.
func DisplaySignal(name string) string {
	if wait, ok := strings.CutPrefix(name, Separator); ok {
		return Display(wait)
	}
	return name
}

// DisplayRun returns the name of a run as people see it: the caller's ID of a root, or the name of the call
// that started a child. The name of a child does not address it.
func DisplayRun(r *store.Run) string {
	if r.Parent.Valid {
		return Display(r.Name)
	}
	return r.Name
}

// ItemCallName returns the name of the call that made the item with the name: a Map or an EachChild, whose items are named by their
// indexes. It returns an empty string if the name is no such name.
func ItemCallName(name string) string {
	at := strings.LastIndex(name, Separator)
	if at < 0 || at+1 == len(name) || strings.Trim(name[at+1:], "0123456789") != "" {
		return ""
	}
	return name[:at]
}

// Scopes yields the prefixes of the scopes around a name, the outermost first.
func Scopes(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range len(name) {
			if name[i] == Separator[0] && !yield(name[:i+1]) {
				return
			}
		}
	}
}
