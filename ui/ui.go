// Package ui is the dashboard of durable: an http.Handler over one engine.
//
// The dashboard shows the runs of the engine's database, and the queues, limits, schedules and workers. Mount the dashboard on
// your own server:
//
//	mux.Handle("/durable/", ui.Handler(engine, ui.Prefix("/durable"), ui.Authorize(authorize)))
//
// Without [Authorize] the dashboard is read-only and hides inputs, outputs and results. Every page works without scripts. The
// content of the pages is also available as JSON under /api/v1; see docs/dashboard.md.
package ui

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/seed8ec063be/durable"
)

// Handler returns an [http.Handler] that serves the dashboard of the engine's database. The dashboard works with an engine that
// has no workflows and executes no runs: [durable.Engine.Run] need not be called.
//
// The handler has no goroutines while nobody uses the dashboard. A page that follows changes has one stream, which ends when
// the [http.Server] shuts down. A request that is not a stream reads the database for at most ten seconds.
//
// Handler panics if an option is invalid, as http.ServeMux does for patterns, because an invalid option is a mistake in the
// program.
func Handler(e *durable.Engine, opts ...Option) http.Handler {
	s := &dashboard{engine: e, mux: http.NewServeMux(), guard: http.NewCrossOriginProtection(), now: time.Now, commandName: "durable", periodCache: newCache(), roundCache: newCache(), readSlots: make(readSlots, maxConcurrentReads), searchTime: searchTime, portionTime: portionTime, cursors: newCursorCipher()}
	s.hub = newStreamHub(e, s.readSlots)
	for _, opt := range opts {
		if err := opt(s); err != nil {
			panic(fmt.Errorf("durable/ui: %w", err))
		}
	}
	s.guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.writeError(w, r, &statusError{http.StatusForbidden, "This request came from another site, so it was refused. Act from the dashboard's own pages."})
	}))
	s.registerRoutes()
	return s
}

// Option configures a [Handler].
type Option func(*dashboard) error

// Prefix sets the path below which the handler is mounted, such as "/durable". By default the handler is mounted at the root,
// with an empty prefix.
func Prefix(path string) Option {
	return func(s *dashboard) error {
		path = strings.TrimRight(path, "/")
		if path != "" && !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?#\\\"'<> ") {
			return fmt.Errorf("the prefix %q is no path: it begins with a slash and has no query, as /durable", path)
		}
		s.prefix = path
		return nil
	}
}

// ReadOnly makes the dashboard refuse all actions, whatever [Authorize] permits.
func ReadOnly() Option {
	return func(s *dashboard) error { s.readOnly = true; return nil }
}

// CommandName sets the name of the command in the command lines that the dashboard offers to copy. For a program that has the commands of
// package durablecli, set for example "shop" or "shop durable". The default is "durable".
func CommandName(name string) Option {
	return func(s *dashboard) error {
		if name == "" || strings.ContainsFunc(name, unicode.IsControl) {
			return fmt.Errorf("the command name %q is not what a person writes in a shell, such as \"shop durable\"", name)
		}
		s.commandName = name
		return nil
	}
}

// dashboard is the handler.
type dashboard struct {
	engine      *durable.Engine
	mux         *http.ServeMux
	patterns    []string // of the mux
	guard       *http.CrossOriginProtection
	now         func() time.Time
	periodCache *cache
	roundCache  *cache // the reads of reload rounds
	readSlots   readSlots
	hub         *streamHub
	cursors     cursorCipher
	prefix      string
	commandName string
	readOnly    bool
	authorize   func(*http.Request, Action) (string, error)
	visible     func(*http.Request) durable.Filter
	redact      func(Field) string
	links       []keyValue // titles and templates

	searchTime  time.Duration // the bound of the search of one page
	clockOffset atomic.Int64  // nanoseconds by which the database's clock is ahead, as last measured
	portionTime time.Duration // the time of one portion of a bulk act
}

// readTimeout bounds the duration of each request except streams, because a page that takes longer would burden the database.
const readTimeout = 10 * time.Second

func (s *dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	http.StripPrefix(s.prefix, s.guard.Handler(s.mux)).ServeHTTP(w, r)
}

// pageFunc handles a request and writes HTML, or returns an error, which writeError shows.
type pageFunc func(w http.ResponseWriter, r *http.Request, v *requestView) error

func (s *dashboard) registerRoutes() {
	get := func(path string, p pageFunc) { s.handle("GET "+path, s.pageHandler(p)) }
	s.handle("GET /{$}", s.replyHandler(s.overviewPage))
	get("/runs", s.runsPage)
	get("/run", s.runPage)
	get("/call", s.callResultPage)
	get("/failures", s.failuresPage)
	get("/queues", s.queuesPage)
	get("/limits", s.limitsPage)
	get("/schedules", s.schedulesPage)
	get("/workers", s.workersPage)
	get("/events", s.eventsPage)
	get("/audit", s.auditPage)
	get("/health", s.healthPage)
	get("/bulk", s.bulkPreview)
	s.handle("POST /bulk", s.pageHandler(s.performBulkBatch))
	s.handle("GET /live", http.HandlerFunc(s.serveReloadStream))
	s.handle("POST /act", s.pageHandler(s.performForm))
	s.handle("GET /assets/{name}", http.HandlerFunc(serveAsset))
	s.registerAPIRoutes()
	s.handle("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.writeError(w, r, &statusError{http.StatusNotFound, "There is no such page."})
	}))
}

func (s *dashboard) handle(pattern string, h http.Handler) {
	s.patterns = append(s.patterns, pattern)
	s.mux.Handle(pattern, h)
}

// pageHandler returns an HTTP handler that calls the page.
func (s *dashboard) pageHandler(p pageFunc) http.Handler {
	return s.replyHandler(func(out *bufferedReply, r *http.Request) error { return s.invokePage(out, r, p) })
}

// replyHandler returns an HTTP handler that calls reply, which writes the response or returns the error to show.
func (s *dashboard) replyHandler(reply func(*bufferedReply, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := withReadTimeout(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		s.measureClockOffset(ctx)
		out := &bufferedReply{ResponseWriter: w}
		if err := reply(out, r); err != nil {
			s.writeError(out, r, err)
		}
		out.send(r)
	})
}

// invokePage calls the page. A request that only reads first waits for a read slot. An act does not wait for requests that read.
func (s *dashboard) invokePage(w http.ResponseWriter, r *http.Request, p pageFunc) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		release, err := s.readSlots.acquire(r.Context())
		if err != nil {
			return err
		}
		defer release()
		return p(w, r, s.newRequestView(r))
	}
	defer func() { // the person who has acted sees the effect, even if somebody else loads a page in an earlier reload round
		s.roundCache.clear()
		s.periodCache.clear()
	}()
	return p(w, r, s.newRequestView(r))
}

// statusError is an error that a person reads, with its HTTP status.
type statusError struct {
	status int
	text   string
}

func (p *statusError) Error() string { return p.text }

// httpStatus returns the HTTP status of an error, and its text for people.
func httpStatus(err error) (int, string) {
	p, invalidValue := new(statusError), errors.Is(err, durable.ErrInvalidConfig) || errors.Is(err, durable.ErrInvalidName) || errors.Is(err, durable.ErrInvalidCursor) || errors.Is(err, durable.ErrNotEncodable) || errors.Is(err, durable.ErrPayloadTooLarge)
	switch {
	case errors.As(err, &p):
		return p.status, p.text
	case errors.Is(err, durable.ErrNotFound), errors.Is(err, durable.ErrNoStep), errors.Is(err, durable.ErrNoGraph):
		return http.StatusNotFound, err.Error()
	case errors.Is(err, durable.ErrState), errors.Is(err, durable.ErrFromRequired), errors.Is(err, durable.ErrValueType), errors.Is(err, durable.ErrIDConflict):
		return http.StatusConflict, err.Error()
	case invalidValue:
		return http.StatusBadRequest, err.Error()
	}
	return http.StatusServiceUnavailable, err.Error()
}
