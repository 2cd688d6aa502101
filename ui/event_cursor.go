package ui

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"strings"

	"github.com/seed8ec063be/durable"
)

// eventPage is a page of the events that a request may see.
type eventPage struct {
	Events []durable.Event
	Next   string // the cursor of the next page
}

// eventCursors make cursors for requests that may not see all runs. The cursor of an event names its run. So a page that ends with hidden events has as
// its cursor that of the last visible event, a dot, and the cursor of its last event, encrypted. A process that cannot decrypt it, because another process
// or this one before a restart made it, goes on from the visible event: only hidden events are read twice.
type eventCursors struct{ box cipher.AEAD }

func newEventCursors() eventCursors {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // no error for a key of 32 bytes
	}
	box, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // no error for AES
	}
	return eventCursors{box}
}

// seal returns the cursor of the hidden event.
func (c eventCursors) seal(visible, hidden string) string {
	return visible + "." + base64.RawURLEncoding.EncodeToString(c.box.Seal(nil, nil, []byte(hidden), nil))
}

// open returns the cursor of the last visible event, and the one at which the page begins.
func (c eventCursors) open(cursor string) (visible, at string) {
	visible, sealed, isSealed := strings.Cut(cursor, ".")
	if !isSealed {
		return cursor, cursor
	}
	text, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return visible, visible
	}
	hidden, err := c.box.Open(nil, nil, text, nil)
	if err != nil {
		return visible, visible
	}
	return visible, string(hidden)
}

// eventList returns the events of a page that read returns and that are visible, the cursor at which the events after them begin, and whether the page was
// full, hidden events included, so that there may be more.
func (v *requestView) eventList(p durable.Page, read func(context.Context, durable.Page) ([]durable.Event, error)) (page eventPage, isFull bool, err error) {
	if err := v.mayRead(Action{}); err != nil {
		return page, false, err
	}
	lastVisible := p.Cursor
	page.Next = p.Cursor
	if v.isBounded() {
		lastVisible, p.Cursor = v.cursors.open(p.Cursor)
	}
	all, err := read(v.ctx(), p)
	if err != nil || len(all) == 0 {
		return page, false, err
	}
	isFull, page.Next = len(all) == p.Limit, all[len(all)-1].Cursor
	if page.Events, err = v.visibleEvents(all); err != nil || !v.isBounded() {
		return page, isFull, err
	}
	if n := len(page.Events); n > 0 {
		lastVisible = page.Events[n-1].Cursor
	}
	if lastVisible != page.Next {
		page.Next = v.cursors.seal(lastVisible, page.Next)
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
