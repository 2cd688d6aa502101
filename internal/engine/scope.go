package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// separator stands between a scope and a name in it. Names given by users may not
// contain control characters, so nobody's name can look like a scope.
const separator = "\x1f"

// MaxName is the longest name, in bytes, that a run, a workflow, a queue or a step
// may have. Names are keys of an index.
const MaxName = 512

// maxFull is the longest name with its scopes: an entry of a PostgreSQL index, with the rest of its key
// and, for a token, a prefix, has at most 2,704 bytes. Longer ones would be refused when the step's
// function has taken effect.
const maxFull = 2400

// Scope is a place for durable calls in a run: names are unique in it.
type Scope struct {
	r      *run
	prefix string
	label  string          // of a Map: what metrics and spans call its items' steps; empty: each by its name
	ctx    context.Context // ends when its calls can do nothing new
	work   context.Context // the parent of its steps' contexts
	undo   bool            // of compensations, which run when the function has returned
	branch *Branch         // that it is in; nil: the workflow function itself
	inside bool            // its calls are made with the context of a step's function
}

// With is the scope for a call that is made with the given context: one of a step's function is told
// from the workflow's by it, in whatever goroutine the call is made.
func (s *Scope) With(ctx context.Context) *Scope {
	if ctx == s.ctx || ctx == nil {
		return s
	}
	if _, attempt := ctx.Value(attemptKey{}).(*task); !attempt {
		return s
	}
	inside := *s
	inside.inside = true
	return &inside
}

// nested reports whether a durable call is made from inside another one's function. Only when
// something executes is the stack worth a look.
func (s *Scope) nested() bool { return s.inside || s.r.idle.executing() && inStep() }

// Context is the workflow function's context: it ends when the run leaves or is doomed,
// and a branch's also when the branch is cancelled.
func (s *Scope) Context() context.Context { return s.ctx }

// left is why a call in this scope can do nothing new, nil if it can.
func (s *Scope) left() error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	err := s.refuse()
	if errors.Is(err, ErrSuspended) {
		s.r.tell()
	}
	return err
}

// over is left for a wait of which it is not decided yet that it returns an error.
func (s *Scope) over() error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	err := s.out()
	if err == ErrSuspended {
		s.r.tell()
	}
	return err
}

// refuse is left with r.mu held.
func (s *Scope) refuse() error {
	err := s.out()
	if err == ErrCancelled && s.branch != nil {
		s.branch.stop() // in a replay its contexts may be those of its history still
		s.branch.refused = s.branch.refused || !s.branch.endedAt().IsZero()
	}
	if d := s.r.doomed; d != nil && d.recorded && err == d.cause { // so may the run's
		s.r.endCtx(err)
		s.r.endWork(err)
	}
	return err
}

// out is refuse for those who only want to know. r.mu is held.
func (s *Scope) out() error {
	switch r := s.r; {
	case r.suspended != nil:
		return ErrSuspended
	case s.undo:
		return nil
	case !s.branch.endedAt().IsZero():
		return ErrCancelled // also when the run itself must end now: it was so at first
	case r.doomed != nil:
		return r.doomed.cause
	case r.returned:
		return r.returnedAlready()
	default:
		return context.Cause(s.ctx)
	}
}

// Engine is the one that executes the run.
func (s *Scope) Engine() *Engine { return s.r.e }

// RunID is the run's UUID.
func (s *Scope) RunID() uuid.UUID { return s.r.row.ID }

// ID is what the run is addressed by: the caller's ID of a root, the UUID of a child.
func (s *Scope) ID() string { return s.r.row.Address() }

// Workflow is the name of the run's workflow.
func (s *Scope) Workflow() string { return s.r.row.Workflow }

// Replaying reports whether the run has executed nothing new yet in this process.
func (s *Scope) Replaying() bool { return !s.r.live.Load() }

// Logger is the engine's logger with the run's names on each line.
func (s *Scope) Logger() *slog.Logger { return s.r.logger() }

// Shown is the name of a step, a wait or a child as people see it: with a slash after each scope, and
// its own slashes escaped, as in "branch/50%25 off%2Feach". No two names are shown as the same.
func Shown(name string) string { return shown.Replace(name) }

// Unshown is the name that is shown so.
func Unshown(text string) string { return unshown.Replace(text) }

var (
	shown   = strings.NewReplacer("%", "%25", "/", "%2F", separator, "/")
	unshown = strings.NewReplacer("%25", "%", "%2F", "/", "/", separator)
)

// ShownSignal is the name of a signal as people see it: as it was given, but for the one that
// completes an Awaitable, which is named by its wait.
func ShownSignal(name string) string {
	if wait, ok := strings.CutPrefix(name, separator); ok {
		return Shown(wait)
	}
	return name
}

// ShownRun is how a run is called by people: a root by the caller's ID, a child by the name of the
// call that started it, which is no address.
func ShownRun(r *store.Run) string {
	if r.Parent.Valid {
		return Shown(r.Name)
	}
	return r.Name
}

// Full is the name, in this scope, as people see it.
func (s *Scope) Full(name string) string { return Shown(s.prefix + name) }

// CheckName answers ErrInvalidName unless the text can be a name: valid UTF-8
// without control characters, not empty, at most MaxName bytes.
func CheckName(what, name string) error {
	if name == "" {
		return fmt.Errorf("%w: the name of a %s is empty: give it one", ErrInvalidName, what)
	}
	return checkShort("name of a "+what, name)
}

// checkShort refuses a text, called what, that is too long for a name, or has control characters in it.
func checkShort(what, text string) error {
	switch {
	case len(text) > MaxName:
		return fmt.Errorf("%w: the %s has %d bytes, at most %d are kept (%.40q…): shorten it, or use a hash of it",
			ErrInvalidName, what, len(text), MaxName, text)
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: the %s, %q, is not valid UTF-8: encode it", ErrInvalidName, what, text)
	}
	for _, c := range text {
		if c < 0x20 || c == 0x7f {
			return fmt.Errorf("%w: the %s, %q, contains the control character %U: leave it out", ErrInvalidName, what, text, c)
		}
	}
	return nil
}

// CheckText refuses text for people, such as a reason, that a database would refuse. Empty
// text is fine.
func CheckText(what, text string) error {
	switch {
	case len(text) > maxText:
		return fmt.Errorf("%w: the %s has %d bytes, at most %d are kept: shorten it", ErrInvalidName, what, len(text), maxText)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return fmt.Errorf("%w: the %s %.40q is not valid UTF-8 text without NUL: encode it", ErrInvalidName, what, text)
	}
	return nil
}

// CheckTag refuses a tag without a namespace, and what cannot be a name.
func CheckTag(key, value string) error {
	if err := CheckName("tag", key); err != nil {
		return err
	}
	if space, rest, _ := strings.Cut(key, "."); space == "" || rest == "" {
		return fmt.Errorf("%w: the tag %q has no namespace: call it like team.owner", ErrInvalidName, key)
	}
	if value == "" {
		return fmt.Errorf("%w: the value of the tag %q is empty: give it one, or leave out the tag", ErrInvalidName, key)
	}
	return checkShort(fmt.Sprintf("value of the tag %q", key), value)
}

// claimName marks the name as used in this execution and answers what history holds
// for it. The site is where the user's code made the call. With nothing terminal there, it
// answers an error if the scope can do nothing new. A child that was started is all that history can
// hold of its start.
func (s *Scope) claimName(full string, kind store.Kind, site uintptr) (*store.Step, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	recorded, err := s.claim(full, kind, site)
	if err != nil || recorded != nil && (recorded.Status.Terminal() || kind == store.KindChild) {
		return recorded, err
	}
	return recorded, s.refuse()
}

// claim is claimName without a look at what the scope can do. r.mu is held.
func (s *Scope) claim(full string, kind store.Kind, site uintptr) (*store.Step, error) {
	r := s.r
	if err := s.use(full, site); err != nil {
		return nil, err
	}
	recorded := r.history[full]
	r.seen(full, kind, recorded)
	if recorded != nil && recorded.Kind != kind {
		return nil, divergedKind(&r.row, full, recorded.Kind, kind)
	}
	if recorded == nil || !recorded.Status.Terminal() {
		r.live.Store(true)
		return recorded, nil
	}
	if r.replayed++; r.replayed == r.recorded {
		r.live.Store(true)
	}
	s.branch.replayed()
	return recorded, nil
}

// use marks the name. When the function has returned its branches still come to the end of their
// history: compensations may be registered on the way. r.mu is held.
func (s *Scope) use(full string, site uintptr) error {
	r := s.r
	if len(full) > maxFull {
		return fmt.Errorf("%w: %.40q… has %d bytes with the scopes around it, at most %d are kept: shorten the names", ErrInvalidName, Shown(full), len(full), maxFull)
	}
	over := r.joined || r.returned && s.branch == nil
	if r.suspended == nil && over && inStep() {
		return nestedError(r, full) // inside a compensation
	}
	if r.suspended != nil || over {
		r.refused()
		if r.suspended == nil {
			return r.tooLate(full, site)
		}
		return ErrSuspended
	}
	if first, twice := r.used[full]; twice {
		return fmt.Errorf("%w: %q in run %q (%s and %s): names are keys; use Map, or add the item's key to the name in a loop",
			ErrDuplicateStep, Shown(full), r.row.Address(), position(first), position(site))
	}
	r.used[full] = site
	return nil
}

func position(pc uintptr) string {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	if frame.File == "" {
		return "unknown position"
	}
	return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
}
