package ui_test

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// bulkReply has the fields of both replies of /api/v1/bulk.
type bulkReply struct {
	Filter   jsontext.Value
	Count    int
	More     bool
	Runs     []struct{ ID string }
	Changed  int
	Refused  []struct{ ID, Error string }
	Finished bool
	Cursor   string
	Error    string
}

func bulkJSON(t *testing.T, h http.Handler, code int, method, path, body string) (reply bulkReply) {
	t.Helper()
	r := httptest.NewRequest(method, path, bytes.NewBufferString(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &reply, json.MatchCaseInsensitiveNames(true)); err != nil || w.Code != code {
		t.Errorf("%s %s %s gives %d, want %d (%v): %s", method, path, body, w.Code, code, err, w.Body)
	}
	return reply
}

func canonical(t *testing.T, v jsontext.Value) string {
	t.Helper()
	own := v.Clone()
	if err := own.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	return string(own)
}

// The JSON previews an act on many runs, freezes its filter, and performs it in portions, as the page does.
func TestBulkActsAsJSON(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.SearchFor(time.Minute), ui.Authorize(func(_ *http.Request, a ui.Action) (string, error) {
			if a.Changes() && a.Run == "w-007" {
				return "", errors.New("not yours")
			}
			return "ann", nil
		}))
		var starts []durable.StartItem[string]
		const runs = 130
		for i := range runs {
			starts = append(starts, durable.StartItem[string]{ID: fmt.Sprintf("w-%03d", i), Input: "in"})
		}
		if _, err := approval.StartMany(within(t), e, starts, durable.Delay(1<<40)); err != nil {
			t.Fatal(err)
		}
		start(t, e, order, "ended", "in")
		preview := bulkJSON(t, h, http.StatusOK, "GET", "/api/v1/bulk?verb=pause&older_than=0s&id_prefix=w-&status=live&roots=yes", "")
		if preview.Count != runs || preview.More || len(preview.Runs) != 20 || strings.Contains(string(preview.Filter), "older_than") || !strings.Contains(string(preview.Filter), "created_before") {
			t.Errorf("the preview is %+v", preview)
		}
		if run, err := e.Get(within(t), "w-000"); err != nil || run.Status == durable.StatusPaused {
			t.Fatalf("after the preview the run is %+v, %v", run, err)
		}
		if _, err := approval.Start(within(t), e, "in", durable.ID("w-late"), durable.Delay(1<<40)); err != nil {
			t.Fatal(err)
		}
		changed, refused, portions := 0, []string(nil), 0
		for filter, cursor := preview.Filter, ""; portions < 200; portions++ {
			got := bulkJSON(t, h, http.StatusOK, "POST", "/api/v1/bulk", fmt.Sprintf(`{"verb":"pause","filter":%s,"cursor":%q,"reason":"<audit>"}`, filter, cursor))
			if got, want := canonical(t, got.Filter), canonical(t, preview.Filter); got != want {
				t.Fatalf("the filter became %s, it was %s", got, want)
			}
			for _, r := range got.Refused {
				refused = append(refused, r.ID+" "+r.Error)
			}
			changed, cursor = changed+got.Changed, got.Cursor
			if got.Finished != (cursor == "") || got.Changed > 100 {
				t.Fatalf("a portion is %+v", got)
			}
			if got.Finished {
				break
			}
		}
		if changed != runs-1 || portions == 0 || len(refused) != 1 || !strings.Contains(refused[0], "w-007 ") || !strings.Contains(refused[0], "not yours") {
			t.Errorf("%d runs were changed, and these refused: %q", changed, refused)
		}
		for id, want := range map[string]durable.Status{"w-000": durable.StatusPaused, "w-129": durable.StatusPaused, "w-007": durable.StatusPending, "w-late": durable.StatusPending} {
			if run, err := e.Get(within(t), id); err != nil || run.Status != want || want == durable.StatusPaused && (run.PausedBy != "ann" || run.Reason != "<audit>") {
				t.Errorf("%s is %+v, %v", id, run, err)
			}
		}
	})
}

// The JSON refuses filters that choose nothing or are not understood, sites of others, and dashboards that are read-only; hidden runs stay as they are.
func TestBulkActsAsJSONAreRefused(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		start(t, e, approval, "waits", "in")
		some := `{"verb":"cancel","filter":{"workflow":"approval"}}`
		for _, c := range []struct {
			h    http.Handler
			body string
			code int
		}{
			{h, `{"verb":"cancel"}`, http.StatusBadRequest},
			{h, `{"verb":"cancel","filter":{}}`, http.StatusBadRequest},
			{h, `{"verb":"cancel","filter":{"roots":true}}`, http.StatusBadRequest},
			{h, `{"verb":"cancel","filter":{"held":false}}`, http.StatusBadRequest},
			{h, `{"verb":"cancel","filter":{"workflow":"approval","queue":""}}`, http.StatusBadRequest},
			{h, `{"verb":"cancel","filter":{"workflow":"approval","queue":null}}`, http.StatusBadRequest},
			{h, `{"verb":"cancel","filter":{"workflow":["approval"]}}`, http.StatusBadRequest},
			{h, `{"verb":"cancel","filter":{"workflow":"approval","status":[]}}`, http.StatusBadRequest},
			{h, `{"verb":"cancel","filter":{"workflow":"approval","held":"no"}}`, http.StatusBadRequest},
			{h, `{"verb":"cancel","filter":{"workflow":"approval","colour":"red"}}`, http.StatusBadRequest},
			{h, `{"verb":"cancel","filter":{"workflow":"approval","verb":"pause"}}`, http.StatusBadRequest},
			{h, `{"verb":"cancel","workflow":"approval"}`, http.StatusBadRequest},
			{h, `{"verb":"signal","filter":{"workflow":"approval"}}`, http.StatusBadRequest},
			{h, `{"verb":"cancel","filter":{"created_before":"soon"}}`, http.StatusBadRequest},
			{h, `[]`, http.StatusBadRequest},
			{ui.Handler(e), some, http.StatusForbidden},
			{ui.Handler(e, ui.Authorize(anyone), ui.ReadOnly()), some, http.StatusForbidden},
		} {
			bulkJSON(t, c.h, c.code, "POST", "/api/v1/bulk", c.body)
		}
		bulkJSON(t, h, http.StatusBadRequest, "GET", "/api/v1/bulk?verb=cancel", "")
		bulkJSON(t, ui.Handler(e), http.StatusForbidden, "GET", "/api/v1/bulk?verb=cancel&workflow=approval", "")
		r := httptest.NewRequest("POST", "/api/v1/bulk", strings.NewReader(some))
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusForbidden {
			t.Errorf("another site's portion gives %d", w.Code)
		}
		bounded := ui.Handler(e, ui.Authorize(anyone), ui.Visible(func(*http.Request) durable.Filter { return durable.Filter{Workflow: "order"} }))
		if got := bulkJSON(t, bounded, http.StatusOK, "GET", "/api/v1/bulk?verb=cancel&workflow=approval", ""); got.Count != 0 {
			t.Errorf("a hidden run is previewed: %+v", got)
		}
		if got := bulkJSON(t, bounded, http.StatusOK, "POST", "/api/v1/bulk", some); got.Changed != 0 || !got.Finished {
			t.Errorf("a hidden run is reached: %+v", got)
		}
		if run, err := e.Get(within(t), "waits"); err != nil || run.Status != durable.StatusWaiting {
			t.Errorf("the run is %+v, %v", run, err)
		}
		if got := bulkJSON(t, h, http.StatusOK, "POST", "/api/v1/bulk", some); got.Changed != 1 || !got.Finished {
			t.Errorf("the portion is %+v", got)
		}
	})
}
