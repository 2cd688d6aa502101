package engine

import (
	"fmt"
	"runtime/debug"

	"github.com/seed8ec063be/durable/internal/telemetry"
)

// Sub is a scope within this one: its names are prefixed by the given one, which is
// then used up here. It leaves no row.
func (s *Scope) Sub(name string, site uintptr) (*Scope, error) {
	if err := CheckName("branch", name); err != nil {
		return nil, err
	}
	full := s.prefix + name
	if err := s.r.useName(full, site); err != nil {
		return nil, err
	}
	return &Scope{r: s.r, prefix: full + separator}, nil
}

// Go runs fn in a goroutine that the run owns: its end is awaited before the run's own is
// written. A panic or runtime.Goexit in it is answered to failed.
func (s *Scope) Go(fn func(), failed func(*Failure)) {
	r := s.r
	r.branches.Go(func() {
		returned := false
		defer func() {
			if v := recover(); v != nil {
				f := panicFailure(v, debug.Stack())
				r.logger().Error("a branch panicked", telemetry.KeyError, f.Message, telemetry.KeyStack, f.Stack)
				failed(f)
			} else if !returned {
				failed(&Failure{Message: fmt.Sprintf("branch %q left by runtime.Goexit", Shown(s.prefix)), Codes: []string{CodeGoexit}})
			}
		}()
		fn()
		returned = true
	})
}

// Recorded reports whether history holds the outcome of the name in this scope.
func (s *Scope) Recorded(name string) bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	row := s.r.history[s.prefix+name]
	return row != nil && row.Status.Terminal()
}
