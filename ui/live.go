package ui

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

// A page follows changes by loading itself again when its stream says so. The cost for the database is bounded for the whole process. Once a
// second, one statement reads the new events, and one statement reads the marks of all runs whose pages are open. Then at most pagesPerTick
// pages are loaded again. All browsers that show the same page and may see the same runs load it in the same reload round, and share what is
// read for it.
const (
	livePeriod         = time.Second
	pagesPerTick       = 4
	runReloadInterval  = 10 * time.Second // the children, queue and limits on the page of a run change without a change of its mark
	listReloadInterval = 5 * time.Second  // the interval between two reloads of a list
	keepAliveInterval  = 15 * time.Second // the interval at which an idle stream writes, so that proxies keep it open and its end is noticed
	writeTimeout       = 10 * time.Second
	mostStreams        = 256
)

// streamHub tells streams when to load their pages again. Its goroutine exists as long as there are streams.
type streamHub struct {
	engine    *durable.Engine
	readSlots readSlots
	ended     endedTally // counts the ended runs by the events that the hub reads

	mu            sync.Mutex
	watchers      map[*streamWatcher]bool
	stopFollowing context.CancelFunc    // ends the goroutine
	servers       map[*http.Server]bool // whose shutdown ends the streams
	closedServers map[*http.Server]bool
	watchedPages  map[livePage]*watchedPage // of the watchers
	rounds        *reloadRounds
}

// livePage identifies a page that several people may have open.
type livePage struct {
	run        string // the UUID of the run that the page shows; empty: a list
	address    string // of the page
	visibility string // distinguishes the runs that the people with this page open may see
	isOverview bool   // an overview, which follows changes within a second, as the page of a run does
}

// reloadsPromptly reports whether the page is loaded within a second after a change.
func (p livePage) reloadsPromptly() bool { return p.isOverview || p.run != "" }

// watchedPage is what the hub knows about an open page.
type watchedPage struct {
	watchers   int
	hasChanged bool      // a change concerns the page
	loadedAt   time.Time // when it was loaded last
	runMark    string    // the mark of its run
}

// streamWatcher is one stream.
type streamWatcher struct {
	livePage
	rounds    chan string  // the ID of the reload round in which its page is to be loaded
	view      *requestView // the view of the stream's request; used for an overview
	server    *http.Server
	endStream context.CancelFunc
}

func newStreamHub(e *durable.Engine, reading readSlots) *streamHub {
	return &streamHub{
		engine: e, readSlots: reading, watchers: make(map[*streamWatcher]bool), servers: make(map[*http.Server]bool), closedServers: make(map[*http.Server]bool),
		watchedPages: make(map[livePage]*watchedPage), rounds: newReloadRounds(),
	}
}

// addWatcher adds a stream. It reports false if there are too many, or the server shuts down.
func (h *streamHub) addWatcher(w *streamWatcher) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.watchers) >= mostStreams || h.closedServers[w.server] {
		return false
	}
	if s := w.server; s != nil && !h.servers[s] {
		h.servers[s] = true
		s.RegisterOnShutdown(func() { h.endServerStreams(s) }) // Shutdown would wait for streams
	}
	h.watchers[w] = true
	p := h.watchedPages[w.livePage]
	if p == nil {
		p = &watchedPage{loadedAt: time.Now()}
		h.watchedPages[w.livePage] = p
	}
	p.watchers++
	p.hasChanged = true // it may have changed after it was loaded and before it has a mark
	if len(h.watchers) == 1 {
		ctx, stop := context.WithCancel(context.Background())
		h.stopFollowing = stop
		go h.followChanges(ctx)
	}
	return true
}

func (h *streamHub) removeWatcher(w *streamWatcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.watchedPages[w.livePage]; p.watchers > 1 {
		p.watchers--
	} else {
		delete(h.watchedPages, w.livePage)
	}
	if delete(h.watchers, w); len(h.watchers) == 0 && h.stopFollowing != nil {
		h.stopFollowing()
		h.stopFollowing = nil
	}
}

func (h *streamHub) endServerStreams(s *http.Server) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closedServers[s] = true
	for w := range h.watchers {
		if w.server == s {
			w.endStream()
		}
	}
}

// watchedRuns returns the UUIDs of the runs whose pages are open.
func (h *streamHub) watchedRuns() (ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.watchedPages {
		if p.run != "" && !slices.Contains(ids, p.run) {
			ids = append(ids, p.run)
		}
	}
	return ids
}

// followChanges reads the events and the marks once in a period, until ctx ends.
func (h *streamHub) followChanges(ctx context.Context) {
	tick := time.NewTicker(livePeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		reading, cancel := context.WithTimeout(ctx, readTimeout)
		events, marks, err := h.readChanges(reading)
		cancel()
		if err != nil {
			h.markAllChanged()
		}
		h.startReloadRound(events, marks, err == nil, time.Now())
	}
}

// readChanges reads the events since the last call, and the marks of the runs whose pages are open.
func (h *streamHub) readChanges(ctx context.Context) (events []durable.Event, marks map[string]string, err error) {
	release, err := h.readSlots.acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	if events, err = h.ended.readNewEvents(ctx, h.engine); err != nil {
		return nil, nil, err
	}
	ids := h.watchedRuns()
	all, err := h.engine.RunFingerprints(ctx, ids...)
	marks = make(map[string]string, len(ids))
	for i, mark := range all {
		marks[ids[i]] = mark
	}
	return events, marks, err
}

// markAllChanged marks all pages as changed, because it is not known which of them have changed.
func (h *streamHub) markAllChanged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.watchedPages {
		p.hasChanged = true
	}
}

// startReloadRound starts the reload rounds of a period. An overview is read before its streams are notified, so that nobody who loads it waits for
// the database.
func (h *streamHub) startReloadRound(events []durable.Event, marks map[string]string, reachable bool, now time.Time) {
	chosen := h.choosePagesToReload(events, marks, reachable, now)
	if len(chosen) == 0 {
		return
	}
	round := h.rounds.startRound()
	for _, page := range chosen {
		if !page.isOverview {
			h.notifyPageWatchers(page, round)
		}
	}
	for _, page := range chosen {
		if !page.isOverview {
			continue
		}
		own := h.rounds.startRound() // the previous overview may have taken so long that the reads of its round are no longer shared
		if v := h.findWatcherView(page); v != nil {
			v.refreshOverview(own)
		}
		h.notifyPageWatchers(page, own)
	}
}

// choosePagesToReload returns the pages that are to be loaded again in a period: first the overviews and the pages of runs that have changed, and
// then the other pages, beginning with the page that was loaded the longest time ago.
func (h *streamHub) choosePagesToReload(events []durable.Event, marks map[string]string, reachable bool, now time.Time) (chosen []livePage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	type duePage struct {
		livePage
		*watchedPage
	}
	var due []duePage
	for id, p := range h.watchedPages {
		every := runReloadInterval
		if id.run == "" { // on a busy database each list changes with every event, so lists wait for listReloadInterval
			every = listReloadInterval
		}
		mark, read := marks[id.run]
		changed := read && p.runMark != "" && p.runMark != mark
		if read {
			p.runMark = mark
		}
		p.hasChanged = p.hasChanged || changed || slices.ContainsFunc(events, func(e durable.Event) bool { return id.run == "" || id.run == e.RunID })
		if age := now.Sub(p.loadedAt); reachable && (p.hasChanged && id.reloadsPromptly() || age >= every) {
			due = append(due, duePage{id, p})
		}
	}
	slices.SortFunc(due, func(a, b duePage) int {
		switch first, second := a.reloadsPromptly() && a.hasChanged, b.reloadsPromptly() && b.hasChanged; {
		case first && !second:
			return -1
		case second && !first:
			return 1
		}
		return a.loadedAt.Compare(b.loadedAt)
	})
	for _, p := range due[:min(len(due), pagesPerTick)] {
		p.hasChanged, p.loadedAt = false, now
		chosen = append(chosen, p.livePage)
	}
	return chosen
}

// findWatcherView returns the view of a stream that follows the page, or nil if there is none.
func (h *streamHub) findWatcherView(page livePage) *requestView {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		if w.livePage == page {
			return w.view
		}
	}
	return nil
}

// notifyPageWatchers tells the streams of a page to load the page in the given reload round.
func (h *streamHub) notifyPageWatchers(page livePage, round string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		if w.livePage != page {
			continue
		}
		select {
		case <-w.rounds: // removes an earlier round that the stream has not written yet
		default:
		}
		w.rounds <- round // only this function sends
	}
}

// findFollowedRun returns the run that a page shows; nil means it shows none.
func (s *dashboard) findFollowedRun(ctx context.Context, v *requestView) (*visibleRun, error) {
	id := v.request.URL.Query().Get("run")
	if id == "" {
		return nil, v.checkMayRead(Action{})
	}
	release, err := s.readSlots.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return v.findRun(id)
}

// serveReloadStream serves the stream of a page. The stream only says that the page is to be loaded again. What the request may see is
// decided when the page is loaded.
func (s *dashboard) serveReloadStream(w http.ResponseWriter, r *http.Request) {
	v := s.newRequestView(r)
	me := &streamWatcher{livePage: livePage{address: r.URL.Query().Get("page")}, rounds: make(chan string, 1)}
	if path, _, _ := strings.Cut(me.address, "?"); path == overviewAddress {
		me.address, me.isOverview, me.view = path, true, v
	}
	me.visibility = v.visibilityCacheKey(v.visibleFilter())
	me.server, _ = r.Context().Value(http.ServerContextKey).(*http.Server)
	run, err := s.findFollowedRun(r.Context(), v)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	if run != nil {
		me.run = run.RunID
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	me.endStream = end
	if !s.hub.addWatcher(me) {
		s.writeError(w, r, &statusError{http.StatusServiceUnavailable, "Too many pages are followed, or the server stops."})
		return
	}
	defer s.hub.removeWatcher(me)
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
	alive := time.NewTicker(keepAliveInterval)
	defer alive.Stop()
	for ok := say("retry: 2000\n\n"); ok; {
		select {
		case <-ctx.Done():
			return
		case round := <-me.rounds:
			ok = say("data: " + round + "\n\n")
		case <-alive.C:
			ok = say(": alive\n\n")
		}
	}
}
