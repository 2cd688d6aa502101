package repair

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// mostNamed bounds the names in an error.
const mostNamed = 10

// NoStepError returns ErrNoStep for a call that the history does not have. The error lists names that may be meant: names that are equal to
// the given name without their scopes or without the escapes of their slashes; or the calls of the scope or node with the given name, or of
// the node with the name of its first scope. If there are none, the error lists all names. For a compensation, the error says what can be
// repaired.
func NoStepError(name string, calls []store.Step) error {
	plain := func(name string) string { return strings.ReplaceAll(name, naming.Separator, "/") }
	if slices.ContainsFunc(calls, func(row store.Step) bool { return row.Kind == store.KindCompensation && row.Name == name }) {
		return fmt.Errorf("%w: %q is a compensation, which a repair cannot name: with From, name the step that it undoes; if the repaired run fails too, its compensations are executed again",
			ErrNoStep, naming.Display(name))
	}
	var unescaped, unscoped, within, beside, names []string
	node, _, isInScope := strings.Cut(name, naming.Separator)
	for i := range calls {
		row := &calls[i]
		if !isCall(row) || recordsTheCode(row) {
			continue
		}
		names = append(names, row.Name)
		if isInScope && strings.HasPrefix(row.Name, node+naming.Separator) {
			beside = append(beside, row.Name)
		}
		switch {
		case plain(row.Name) == plain(name):
			unescaped = append(unescaped, row.Name)
		case strings.HasPrefix(row.Name, name+naming.Separator):
			within = append(within, row.Name)
		case strings.HasSuffix(plain(row.Name), "/"+plain(name)):
			unscoped = append(unscoped, row.Name)
		}
	}
	hint := ""
	switch shape := shapeOf(calls); {
	case len(unescaped) > 0:
		hint = didYouMean(unescaped)
	case shape != nil && shape.Index(name) >= 0 && len(within) == 0:
		hint = "it is a node, and nothing of it is recorded"
	case shape != nil && shape.Index(name) >= 0:
		hint = "it is a node: name one of its calls: " + quoteNames(within)
	case shape != nil && isInScope && shape.Index(node) >= 0 && len(beside) == 0:
		hint = fmt.Sprintf("nothing of the node %q is recorded, because the node has not begun, or was skipped or cancelled: wait until it has begun, or name a call of a node that it needs", node)
	case shape != nil && isInScope && shape.Index(node) >= 0 && len(within) == 0:
		hint = fmt.Sprintf("name one of the calls of the node %q: %s", node, quoteNames(beside))
	case len(within) > 0:
		hint = "it is a scope: name one of its calls: " + quoteNames(within)
	case len(unscoped) > 0:
		hint = didYouMean(unscoped)
	case len(names) > 0:
		hint = "it has " + quoteNames(names)
	default:
		hint = "it has no call yet"
	}
	return fmt.Errorf("%w: %q is not in its history: %s", ErrNoStep, naming.Display(name), hint)
}

// isCall reports whether a repair can name the checkpoint.
func isCall(row *store.Step) bool {
	return !isInternalRecord(row) && row.Kind != store.KindCompensation
}

func didYouMean(names []string) string {
	if len(names) == 1 {
		return "did you mean " + quoteNames(names) + "?"
	}
	return "did you mean one of " + quoteNames(names) + "?"
}

// quoteNames returns the first mostNamed names as people see them, and how many others there are.
func quoteNames(names []string) string {
	var quoted []string
	for _, name := range names[:min(len(names), mostNamed)] {
		quoted = append(quoted, strconv.Quote(naming.Display(name)))
	}
	text := strings.Join(quoted, ", ")
	if others := len(names) - len(quoted); others > 0 {
		text += fmt.Sprintf(" and %d others", others)
	}
	return text
}
