package ui_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/sqlite"
	"github.com/seed8ec063be/durable/ui"
)

// restoredStore is a store that was restored to a state before all cursors.
type restoredStore struct {
	durable.Store
	cursor string // of the last read
}

func (s *restoredStore) Events(ctx context.Context, after string, limit int) ([]store.Event, error) {
	if s.cursor = after; after != "" {
		return nil, errors.Join(store.ErrBadData, store.ErrRestored)
	}
	return s.Store.Events(ctx, after, limit)
}

// If the event of a cursor is gone, the error quotes the cursor of the request, and not the cursor of a hidden event that is encrypted
// in it.
func TestErrorsOfEventsNameNoHiddenRun(t *testing.T) {
	inner, err := sqlite.Open(filepath.Join(t.TempDir(), "ui.db"), sqlite.Synchronous(sqlite.Normal))
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	s := &restoredStore{Store: inner}
	e, err := durable.New(s, durable.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, started := approval.Start(within(t), e, "in", durable.ID("hidden"), durable.Delay(1<<40))
	if _, err := e.Cancel(within(t), "hidden"); errors.Join(started, err) != nil {
		t.Fatal(started, err)
	}
	h := ui.Handler(e, tenantA)
	var page struct{ Next string }
	got := send(h, "/api/v1/events", nil)
	if err := json.Unmarshal(got.Body.Bytes(), &page, json.MatchCaseInsensitiveNames(true)); err != nil || len(page.Next) < 20 {
		t.Fatalf("got %d, %v: %s", got.Code, err, got.Body)
	}
	got = send(h, "/api/v1/events?cursor="+url.QueryEscape(page.Next), nil)
	text := got.Body.String()
	if got.Code != http.StatusBadRequest || s.cursor == "" || strings.Contains(text, s.cursor) || !strings.Contains(text, page.Next[:20]) || !strings.Contains(text, "restored") {
		t.Errorf("the cursor of %q gives %d: %s", s.cursor, got.Code, text)
	}
}
