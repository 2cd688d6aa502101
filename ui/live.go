package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

// Pages follow changes by loading themselves again when their stream says so. What that costs the database is bounded for the whole
// process. Once a second, one statement reads the events, and one reads marks of all runs whose pages are open. Then as many pages are loaded
// as a second has turns. All who look at a page and see the same runs load it in the same turn, and share what is read for it.
const (
	livePeriod   = time.Second
	turnsPerTick = 4
	runEvery     = 10 * time.Second // what its page shows of its children, queue and limits changes without a mark
	listEvery    = 5 * time.Second  // lists are loaded at most so often, and at least
	aliveEvery   = 15 * time.Second // an idle stream says something, so that proxies keep it and its end is noticed
	writeTimeout = 10 * time.Second
	mostStreams  = 256
)

// hub tells streams when to load their pages again. Its goroutine exists as long as there are streams.
type hub struct {
	engine  *durable.Engine
	reading places
	ended   tally // of runs, by the events that the hub reads

	mu       sync.Mutex
	watchers map[*watcher]bool
	stop     context.CancelFunc    // ends the goroutine
	servers  map[*http.Server]bool // whose shutdown ends the streams
	closed   map[*http.Server]bool
	pages    map[livePage]*pageState // of the watchers
	turn     int                     // the number of the last one
}

// livePage is what several people may look at.
type livePage struct {
	run     string // the UUID of the run that the page shows; empty: a list
	address string // of the page
	bound   string // the runs that those who look may see
	prompt  bool   // an overview, which follows changes within a second, as the page of a run does
}

// follows reports whether the page is loaded within a second after a change.
func (p livePage) follows() bool { return p.prompt || p.run != "" }

// pageState is what the hub knows of a page.
type pageState struct {
	watchers int
	dirty    bool      // a change concerns the page
	last     time.Time // when it was loaded last
	mark     string    // of its run
}

// watcher is one stream.
type watcher struct {
	livePage
	turns  chan int // the number of the turn in which it is to load its page
	server *http.Server
	end    context.CancelFunc
}

func newHub(e *durable.Engine, reading places) *hub {
	return &hub{
		engine: e, reading: reading, watchers: make(map[*watcher]bool), servers: make(map[*http.Server]bool), closed: make(map[*http.Server]bool),
		pages: make(map[livePage]*pageState),
	}
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
	p := h.pages[w.livePage]
	if p == nil {
		p = &pageState{last: time.Now()}
		h.pages[w.livePage] = p
	}
	p.watchers++
	p.dirty = true // it may have changed after it was loaded and before it has a mark
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
	if p := h.pages[w.livePage]; p.watchers > 1 {
		p.watchers--
	} else {
		delete(h.pages, w.livePage)
	}
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

// runs returns the UUIDs of the runs whose pages are open.
func (h *hub) runs() (ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.pages {
		if p.run != "" && !slices.Contains(ids, p.run) {
			ids = append(ids, p.run)
		}
	}
	return ids
}

// follow reads the events and the marks once in a period, until ctx ends.
func (h *hub) follow(ctx context.Context) {
	tick := time.NewTicker(livePeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		reading, cancel := context.WithTimeout(ctx, readTimeout)
		events, marks, err := h.look(reading)
		cancel()
		if err != nil {
			h.markAll()
		}
		h.tell(events, marks, err == nil, time.Now())
	}
}

// look reads the events since the last call, and the marks of the runs whose pages are open.
func (h *hub) look(ctx context.Context) (events []durable.Event, marks map[string]string, err error) {
	release, err := h.reading.take(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	if events, err = h.ended.next(ctx, h.engine); err != nil {
		return nil, nil, err
	}
	ids := h.runs()
	all, err := h.engine.ChangeMarks(ctx, ids...)
	marks = make(map[string]string, len(ids))
	for i, mark := range all {
		marks[ids[i]] = mark
	}
	return events, marks, err
}

// markAll marks all pages: what has changed was not read.
func (h *hub) markAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.pages {
		p.dirty = true
	}
}

// tell gives the turns of a period: first to the overviews and the pages of runs that have changed, then to those that were loaded longest ago.
func (h *hub) tell(events []durable.Event, marks map[string]string, reachable bool, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	type duePage struct {
		livePage
		*pageState
	}
	var due []duePage
	for id, p := range h.pages {
		every := runEvery
		if id.run == "" { // on a busy database every list has an event, so lists wait for their time
			every = listEvery
		}
		mark, read := marks[id.run]
		changed := read && p.mark != "" && p.mark != mark
		if read {
			p.mark = mark
		}
		p.dirty = p.dirty || changed || slices.ContainsFunc(events, func(e durable.Event) bool { return id.run == "" || id.run == e.RunID })
		if age := now.Sub(p.last); reachable && (p.dirty && id.follows() || age >= every) {
			due = append(due, duePage{id, p})
		}
	}
	slices.SortFunc(due, func(a, b duePage) int {
		switch first, second := a.follows() && a.dirty, b.follows() && b.dirty; {
		case first && !second:
			return -1
		case second && !first:
			return 1
		}
		return a.last.Compare(b.last)
	})
	h.turn++
	for _, p := range due[:min(len(due), turnsPerTick)] {
		p.dirty, p.last = false, now
		for w := range h.watchers {
			if w.livePage != p.livePage {
				continue
			}
			select {
			case <-w.turns: // it was told before, and has not written it yet
			default:
			}
			w.turns <- h.turn // only tell sends
		}
	}
}

// followed returns the run that a page shows; nil: it shows none.
func (s *server) followed(ctx context.Context, v *view) (*seen, error) {
	id := v.request.URL.Query().Get("run")
	if id == "" {
		return nil, v.mayRead(Action{})
	}
	release, err := s.reading.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return v.find(id)
}

// live is the stream of a page. It says only that the page is to be loaded again: what the request may see is decided then.
func (s *server) live(w http.ResponseWriter, r *http.Request) {
	v := s.view(r)
	me := &watcher{livePage: livePage{address: r.URL.Query().Get("page")}, turns: make(chan int, 1)}
	path, _, _ := strings.Cut(me.address, "?")
	me.prompt = path == "/" // the prefix is stripped
	if v.bounded() {
		me.bound = fmt.Sprintf("%+v", v.bound())
	}
	me.server, _ = r.Context().Value(http.ServerContextKey).(*http.Server)
	run, err := s.followed(r.Context(), v)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if run != nil {
		me.run = run.RunID
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
		case turn := <-me.turns:
			ok = say(fmt.Sprintf("data: %d\n\n", turn))
		case <-alive.C:
			ok = say(": alive\n\n")
		}
	}
}
