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

// CallbackSignal returns the name of the signal that completes the Callback with the given name, which includes its scopes. The argument
// generation is empty, or tells the callbacks of one name apart in a run that continues as new. It follows two separators, so that the
// signal cannot be that of another name: no scope has an empty name.
func CallbackSignal(wait, generation string) string {
	if generation == "" {
		return Separator + wait
	}
	return Separator + wait + Separator + Separator + generation
}

// ParseCallbackSignal returns the arguments for which CallbackSignal returns signal. It reports false for the signal of a user.
func ParseCallbackSignal(signal string) (wait, generation string, ok bool) {
	if wait, ok = strings.CutPrefix(signal, Separator); !ok {
		return "", "", false
	}
	wait, generation, _ = strings.Cut(wait, Separator+Separator)
	return wait, generation, true
}

// DisplaySignal returns the name of a signal as people see it. It is the name as given, except for the
// signal that completes a Callback, which is named after its wait and the generation of the callback.
func DisplaySignal(name string) string {
	if wait, generation, ok := ParseCallbackSignal(name); ok {
		return Display(wait) + generation
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
