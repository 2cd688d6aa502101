package ui

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable"
)

// eventPage is a page of the events that a request may see.
type eventPage struct {
	Events []durable.Event
	Next   string // the cursor of the next page
}

// eventList returns the visible events of the page that read returns, and the cursor at which the following events begin. It also reports whether the
// page was full, hidden events included, so that there may be further events.
func (v *requestView) eventList(p durable.Page, read func(context.Context, durable.Page) ([]durable.Event, error)) (page eventPage, isFull bool, err error) {
	if err := v.checkMayRead(Action{}); err != nil {
		return page, false, err
	}
	given, lastVisible := p.Cursor, p.Cursor
	page.Next = p.Cursor
	if v.hasLimitedVisibility() {
		lastVisible, p.Cursor = v.cursors.decrypt(p.Cursor)
	}
	all, err := read(v.ctx(), p)
	if errors.Is(err, durable.ErrInvalidCursor) && p.Cursor != given { // err quotes the cursor of a hidden event
		err = fmt.Errorf("%w: %.60q: its event is missing, and older events exist: perhaps the database was restored to an earlier state; continue from an earlier cursor, or from an empty one", durable.ErrInvalidCursor, given)
	}
	if err != nil || len(all) == 0 {
		return page, false, err
	}
	isFull, page.Next = len(all) == p.Limit, all[len(all)-1].Cursor
	page.Events, err = v.visibleEvents(all)
	for i := range page.Events {
		if e := &page.Events[i]; e.Type == durable.EventPaused {
			(&redactor{redact: v.redact, workflow: e.Workflow}).redactText(FieldError, "", &e.New) // why the run is held
		}
	}
	if err != nil || !v.hasLimitedVisibility() {
		return page, isFull, err
	}
	if n := len(page.Events); n > 0 {
		lastVisible = page.Events[n-1].Cursor
	}
	if lastVisible != page.Next {
		page.Next = v.cursors.encrypt(lastVisible, page.Next)
	}
	return page, isFull, nil
}

// latestEvents returns a page of the newest events before the cursor; Next is empty if there are none before.
func (v *requestView) latestEvents(p durable.Page) (eventPage, error) {
	page, isFull, err := v.eventList(p, v.engine.LatestEvents)
	if !isFull {
		page.Next = ""
	}
	return page, err
}
