package ui

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

// Pages follow changes by loading themselves again when their stream says so. What that costs the database is bounded for the whole
// process: one statement a second for the events, and as many pages as a second has turns. If more people look, each page is
// loaded less often.
const (
	livePeriod    = time.Second
	turnsPerTick  = 4
	runEvery      = 2 * time.Second // steps of a run are no events, so its page is loaded without one too
	listEvery     = 5 * time.Second
	aliveEvery    = 15 * time.Second // an idle stream says something, so that proxies keep it and its end is noticed
	writeTimeout  = 10 * time.Second
	mostStreams   = 256
	eventsPerRead = 1000
)

// hub tells streams when to load their pages again. Its goroutine exists as long as there are streams.
type hub struct {
	engine *durable.Engine

	mu       sync.Mutex
	watchers map[*watcher]bool
	stop     context.CancelFunc    // ends the goroutine
	servers  map[*http.Server]bool // whose shutdown ends the streams
	closed   map[*http.Server]bool
}

// watcher is one stream.
type watcher struct {
	run     string // the UUID of the run that the page shows; empty: a list
	changed chan struct{}
	dirty   bool      // an event concerns the page
	last    time.Time // when it was told to load last
	server  *http.Server
	end     context.CancelFunc
}

func newHub(e *durable.Engine) *hub {
	return &hub{engine: e, watchers: make(map[*watcher]bool), servers: make(map[*http.Server]bool), closed: make(map[*http.Server]bool)}
}

// join adds a stream. It reports false if there are too many, or the server shuts down.
func (h *hub) join(w *watcher) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.watchers) >= mostStreams || h.closed[w.server] {
		return false
	}
	if s := w.server; s != nil && !h.servers[s] {
		h.servers[s] = true
		s.RegisterOnShutdown(func() { h.endAll(s) }) // Shutdown would wait for streams
	}
	h.watchers[w] = true
	if len(h.watchers) == 1 {
		ctx, stop := context.WithCancel(context.Background())
		h.stop = stop
		go h.follow(ctx)
	}
	return true
}

func (h *hub) leave(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(h.watchers, w); len(h.watchers) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

func (h *hub) endAll(s *http.Server) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed[s] = true
	for w := range h.watchers {
		if w.server == s {
			w.end()
		}
	}
}

// follow reads the events once in a period, until ctx ends.
func (h *hub) follow(ctx context.Context) {
	tick := time.NewTicker(livePeriod)
	defer tick.Stop()
	cursor, known := "", false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var events []durable.Event
		reading, cancel := context.WithTimeout(ctx, readTimeout)
		var err error
		if known {
			events, err = h.engine.Events(reading, durable.Page{Cursor: cursor, Limit: eventsPerRead})
		}
		if !known || len(events) == eventsPerRead { // what came long ago is of no interest
			cursor, err = h.engine.EventCursor(reading)
		} else if len(events) > 0 {
			cursor = events[len(events)-1].Cursor
		}
		cancel()
		known = err == nil // else the database is away, or was restored: begin anew
		h.tell(events, err == nil, time.Now())
	}
}

// tell gives the turns of a period: first to the runs that an event concerns, then to the pages that were loaded longest ago. On a busy
// database every list has an event, so lists are not first.
func (h *hub) tell(events []durable.Event, reachable bool, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var due []*watcher
	for w := range h.watchers {
		every := runEvery
		if w.run == "" {
			every = listEvery
		}
		w.dirty = w.dirty || slices.ContainsFunc(events, func(e durable.Event) bool { return w.run == "" || w.run == e.RunID })
		if reachable && (w.dirty || now.Sub(w.last) >= every) {
			due = append(due, w)
		}
	}
	slices.SortFunc(due, func(a, b *watcher) int {
		switch first, second := a.run != "" && a.dirty, b.run != "" && b.dirty; {
		case first && !second:
			return -1
		case second && !first:
			return 1
		}
		return a.last.Compare(b.last)
	})
	for _, w := range due[:min(len(due), turnsPerTick)] {
		w.dirty, w.last = false, now
		select {
		case w.changed <- struct{}{}:
		default: // it was told before, and has not written it yet
		}
	}
}

// live is the stream of a page. It says only that the page is to be loaded again: what the request may see is decided then.
func (s *server) live(w http.ResponseWriter, r *http.Request) {
	v := s.view(r)
	me := &watcher{changed: make(chan struct{}, 1), last: time.Now()}
	me.server, _ = r.Context().Value(http.ServerContextKey).(*http.Server)
	err := v.mayRead(Action{})
	if id := r.URL.Query().Get("run"); id != "" {
		var run *seen
		if run, err = v.find(id); err == nil {
			me.run = run.RunID
		}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	me.end = end
	if !s.hub.join(me) {
		s.fail(w, r, &problem{http.StatusServiceUnavailable, "Too many pages are followed, or the server stops."})
		return
	}
	defer s.hub.leave(me)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	say := func(text string) bool {
		if err := out.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return false
		}
		_, err := w.Write([]byte(text))
		return err == nil && out.Flush() == nil
	}
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for ok := say("retry: 2000\n\n"); ok; {
		select {
		case <-ctx.Done():
			return
		case <-me.changed:
			ok = say("data: changed\n\n")
		case <-alive.C:
			ok = say(": alive\n\n")
		}
	}
}
