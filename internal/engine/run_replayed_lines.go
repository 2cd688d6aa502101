package engine

import (
	"github.com/seed8ec063be/durable/internal/naming"
)

// replayedLines tells which log lines of the workflow function an earlier execution has written: the lines before a recorded call of
// the same scope. A line after the last recorded call of its scope may be new, even if other branches have recorded later calls.
type replayedLines struct {
	uncalled map[string]struct{} // the recorded calls that this execution has not made, and the prefixes of scopes in which it has made none
	counts   map[string]int      // the number of entries in uncalled, by the prefix of the scope that makes them
}

// parentScopePrefix returns the prefix of the scope that makes a call, or that opens the scope with a prefix.
func parentScopePrefix(key string) string {
	if n := len(key) - len(naming.Separator); n > 0 && key[n:] == naming.Separator {
		key = key[:n]
	}
	return scopePrefix(key)
}

// newReplayedLines is called with the first log line of the function, so that a function without log lines costs nothing. r.mu is held.
func (r *run) newReplayedLines() *replayedLines {
	l := &replayedLines{uncalled: make(map[string]struct{}), counts: make(map[string]int)}
	add := func(key string) {
		if _, twice := l.uncalled[key]; !twice {
			l.uncalled[key] = struct{}{}
			l.counts[parentScopePrefix(key)]++
		}
	}
	for name, row := range r.history {
		if r.mustBeCalledInReplay(row) && r.branchEnds.endOfOutermostBranch(name) == nil {
			add(name)
			for prefix := range naming.Scopes(name) {
				add(prefix)
			}
		}
	}
	for name := range r.usedNames {
		l.noteCall(name)
	}
	return l
}

// noteCall notes that this execution makes a call.
func (l *replayedLines) noteCall(name string) {
	if l == nil {
		return
	}
	for prefix := range naming.Scopes(name) {
		l.remove(prefix)
	}
	l.remove(name + naming.Separator) // the items of a Map need not be called again
	if !l.remove(name) {              // nothing that this scope does from now on is recorded
		delete(l.counts, scopePrefix(name))
	}
}

func (l *replayedLines) remove(key string) (found bool) {
	if _, found = l.uncalled[key]; found {
		delete(l.uncalled, key)
		if parent := parentScopePrefix(key); l.counts[parent] > 0 {
			l.counts[parent]--
		}
	}
	return found
}

// HasWrittenNextLine reports whether an earlier execution has written the log line that the scope is about to write: it has recorded a call
// that follows in this scope, or in a branch that the scope opens later.
func (s *Scope) HasWrittenNextLine() bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if len(s.r.history) == 0 {
		return false
	}
	if s.r.replayedLines == nil {
		s.r.replayedLines = s.r.newReplayedLines()
	}
	return s.r.replayedLines.counts[s.namePrefix] > 0
}
