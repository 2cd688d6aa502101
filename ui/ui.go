// Package ui is the dashboard of durable: an http.Handler over one engine.
//
// It shows the runs of the engine's database, and the queues, limits, schedules and workers. Mount it on your own server:
//
//	mux.Handle("/durable/", ui.Handler(engine, ui.Prefix("/durable"), ui.Authorize(authorize)))
//
// Without [Authorize] the dashboard is read-only and hides inputs, outputs and results. Every page works without scripts, and the
// same content is available as JSON under /api/v1; docs/dashboard.md describes it.
package ui

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable"
)

// Handler returns the dashboard of the engine's database. The engine needs no workflows and need not run.
//
// The handler has no goroutines while nobody uses it, and a page that follows changes has one stream, which ends when its
// [http.Server] shuts down. Every other request reads the database for at most ten seconds.
//
// Handler panics if an option is invalid, as http.ServeMux does for patterns, because that is a fault of the program.
func Handler(e *durable.Engine, opts ...Option) http.Handler {
	s := &server{engine: e, mux: http.NewServeMux(), guard: http.NewCrossOriginProtection(), now: time.Now, read: newCache(), turns: newCache(), reading: make(places, mostReading), searchTime: searchTime, portionTime: portionTime}
	s.hub = newHub(e, s.reading)
	for _, opt := range opts {
		if err := opt(s); err != nil {
			panic(fmt.Errorf("durable/ui: %w", err))
		}
	}
	s.guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &problem{http.StatusForbidden, "This request came from another site, so it was refused. Act from the dashboard's own pages."})
	}))
	s.routes()
	return s
}

// Option configures a [Handler].
type Option func(*server) error

// Prefix is the path below which the handler is mounted, such as "/durable". The empty prefix is the default.
func Prefix(path string) Option {
	return func(s *server) error {
		path = strings.TrimRight(path, "/")
		if path != "" && !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?#\\\"'<> ") {
			return fmt.Errorf("the prefix %q is no path: it begins with a slash and has no query, as /durable", path)
		}
		s.prefix = path
		return nil
	}
}

// ReadOnly refuses all actions, whatever [Authorize] permits.
func ReadOnly() Option {
	return func(s *server) error { s.readOnly = true; return nil }
}

// server is the handler.
type server struct {
	engine    *durable.Engine
	mux       *http.ServeMux
	patterns  []string // of the mux
	guard     *http.CrossOriginProtection
	now       func() time.Time
	read      *cache
	turns     *cache // of loads in a turn
	reading   places
	hub       *hub
	prefix    string
	readOnly  bool
	authorize func(*http.Request, Action) (string, error)
	visible   func(*http.Request) durable.Filter
	redact    func(Field) string
	links     []keyValue // titles and templates

	searchTime  time.Duration // of a page
	clockOffset atomic.Int64  // nanoseconds by which the database's clock is ahead, as last measured
	portionTime time.Duration // of a portion of a bulk act
}

// readTimeout bounds each request, but for streams: a page that takes longer burdens the database.
const readTimeout = 10 * time.Second

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	http.StripPrefix(s.prefix, s.guard.Handler(s.mux)).ServeHTTP(w, r)
}

// page is a request that returns HTML, or an error for fail.
type page func(w http.ResponseWriter, r *http.Request, v *view) error

func (s *server) routes() {
	get := func(path string, p page) { s.handle("GET "+path, s.serve(p)) }
	get("/{$}", s.overview)
	get("/runs", s.runs)
	get("/run", s.run)
	get("/call", s.call)
	get("/queues", s.queues)
	get("/limits", s.limits)
	get("/schedules", s.schedules)
	get("/workers", s.workers)
	get("/events", s.events)
	get("/audit", s.audit)
	get("/health", s.health)
	get("/bulk", s.bulkPreview)
	s.handle("POST /bulk", s.serve(s.bulkPortion))
	s.handle("GET /live", http.HandlerFunc(s.live))
	s.handle("POST /act", s.serve(s.act))
	s.handle("GET /assets/{name}", http.HandlerFunc(serveAsset))
	s.routesOfAPI()
	s.handle("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &problem{http.StatusNotFound, "There is no such page."})
	}))
}

func (s *server) handle(pattern string, h http.Handler) {
	s.patterns = append(s.patterns, pattern)
	s.mux.Handle(pattern, h)
}

// serve makes an HTTP handler of a page.
func (s *server) serve(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := contextWithTimeout(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		s.measureClock(ctx)
		out := &reply{ResponseWriter: w}
		if err := s.callPage(out, r, p); err != nil {
			s.fail(out, r, err)
		}
		out.send(r)
	})
}

// callPage calls the page. A page that only reads does so in its turn; an act never waits for those who look.
func (s *server) callPage(w http.ResponseWriter, r *http.Request, p page) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		release, err := s.reading.take(r.Context())
		if err != nil {
			return err
		}
		defer release()
		return p(w, r, s.view(r))
	}
	defer s.read.clear() // who has acted sees the effect
	return p(w, r, s.view(r))
}

// problem is an error that a person reads, with its HTTP status.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

// statusOf returns the HTTP status of an error, and its text for people.
func statusOf(err error) (int, string) {
	p, invalidValue := new(problem), errors.Is(err, durable.ErrInvalidConfig) || errors.Is(err, durable.ErrInvalidName) || errors.Is(err, durable.ErrInvalidCursor) || errors.Is(err, durable.ErrNotEncodable) || errors.Is(err, durable.ErrPayloadTooLarge)
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
