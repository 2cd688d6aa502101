package ui

import (
	"context"
	"net/http"
	"time"

	"github.com/seed8ec063be/durable"
)

// The overview is the page that most people keep open. Apart from the runs that Visible selects, it shows the same to everybody. Therefore all people
// who see the same runs get the same page, which is read, rendered and compressed once. While streams follow the overview, the hub reads it again
// before it notifies them, so that nobody waits for the database.
const (
	overviewPeriod = time.Second
	// maxFollowedAge is how old an overview may be while streams follow it. The hub reads the overview again within a second after a change, if the
	// database is available.
	maxFollowedAge = 2 * time.Second
)

// overviewPage shows the overview. It takes a read slot only if it has to read the database.
func (s *dashboard) overviewPage(out *bufferedReply, r *http.Request) error {
	v := s.newRequestView(r)
	if err := v.checkMayRead(Action{}); err != nil { // all that the page reads needs no more than this
		return err
	}
	page, err := v.cachedOverview()
	if err == nil {
		out.writeRenderedPage(page)
	}
	return err
}

// cachedOverview returns the overview of the runs that the request may see. For a request of a reload round, the overview was read after the round
// began. For other requests, it is at most overviewPeriod old, or maxFollowedAge if streams follow it.
func (v *requestView) cachedOverview() (*renderedPage, error) {
	visible := v.visibleFilter()
	key := v.visibilityCacheKey(visible)
	round := v.reloadRound()
	oldest := time.Now().Add(-overviewPeriod)
	if givenAt, isShared := v.hub.rounds.findStartTime(round); isShared {
		oldest = givenAt
	} else if v.hub.hasOverviewWatchers(key) {
		oldest = time.Now().Add(-maxFollowedAge)
	}
	page, _, err := cachedReadIf(v.ctx(), v.periodCache, cacheKey("overview", key), func(readAt time.Time, _ bool) bool { return !readAt.Before(oldest) }, func(ctx context.Context) (*renderedPage, error) {
		release, err := v.readSlots.acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
		if round == "" {
			round = v.hub.rounds.startRound() // so that no part of what is read is older
		}
		reading := v.newRequestView(v.request.Clone(ctx))
		reading.request.Header.Set(roundHeader, round)
		reading.fixedVisible = &visible // the page is shown to all for whom Visible has returned this filter, and to nobody else
		d, err := reading.overviewData()
		if err != nil {
			return nil, err
		}
		html, err := reading.renderPage("overview", pageFrame{Title: "Overview", Section: "/", Live: true, Address: "/", Data: d})
		if err != nil {
			return nil, err
		}
		return newRenderedPage(html), nil
	})
	return page, err
}

// visibilityCacheKey distinguishes requests that see different runs; empty means they see all.
func (v *requestView) visibilityCacheKey(visible durable.Filter) string {
	if !v.hasLimitedVisibility() {
		return ""
	}
	return cacheKey("visible", visible)
}

// refreshOverview reads the overview for a reload round, before the streams are notified. If this fails, the first request that loads the
// overview reads it.
func (v *requestView) refreshOverview(round string) {
	// The functions of the options are called outside of a request. If one panics, it panics again in the requests of those who load the page.
	defer func() { _ = recover() }()
	ctx, cancel := context.WithTimeout(v.ctx(), overviewPeriod) // the other streams wait
	defer cancel()
	reading := v.newRequestView(v.request.Clone(ctx))
	reading.request.Header.Set(roundHeader, round)
	_, _ = reading.cachedOverview()
}

// hasOverviewWatchers reports whether streams follow the overview of those who see the same runs.
func (h *streamHub) hasOverviewWatchers(visibility string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.watchedPages[livePage{address: overviewAddress, visibility: visibility, isOverview: true}] != nil
}

const overviewAddress = "/" // the prefix is stripped
