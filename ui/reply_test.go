package ui

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed8ec063be/durable"
)

// As many pages as have places read at once. Others wait, and who waits too long is told why; an act does not wait.
func TestPagesReadInTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &dashboard{engine: new(durable.Engine), readSlots: make(readSlots, maxConcurrentReads), now: time.Now, periodCache: newCache(), roundCache: newCache()}
		release := make(chan bool)
		var reading atomic.Int32
		h := s.pageHandler(func(w http.ResponseWriter, _ *http.Request, _ *requestView) error {
			reading.Add(1)
			<-release
			reading.Add(-1)
			_, err := w.Write([]byte("done"))
			return err
		})
		request := func(method, path string) chan *httptest.ResponseRecorder {
			out := make(chan *httptest.ResponseRecorder, 1)
			go func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
				out <- w
			}()
			synctest.Wait()
			return out
		}
		var all []chan *httptest.ResponseRecorder
		for range maxConcurrentReads + 1 {
			all = append(all, request("GET", "/api/v1/runs"))
		}
		if reading.Load() != maxConcurrentReads {
			t.Errorf("%d pages are read at once", reading.Load())
		}
		act := request("POST", "/act")
		if reading.Load() != maxConcurrentReads+1 {
			t.Error("an act waits for pages")
		}
		began := time.Now()
		busy := <-all[maxConcurrentReads]
		if busy.Code != http.StatusServiceUnavailable || !strings.Contains(busy.Body.String(), "The dashboard is busy") || busy.Header().Get("Retry-After") == "" || time.Since(began) != readSlotTimeout {
			t.Errorf("who waits for %s gets %d: %s", time.Since(began), busy.Code, busy.Body)
		}
		waiting := request("GET", "/api/v1/runs")
		release <- true
		synctest.Wait()
		if reading.Load() != maxConcurrentReads+1 {
			t.Error("a place that is free is not taken")
		}
		for range maxConcurrentReads + 1 {
			release <- true
		}
		for _, done := range []chan *httptest.ResponseRecorder{all[0], all[1], act, waiting} {
			if w := <-done; w.Code != http.StatusOK || w.Body.String() != "done" {
				t.Errorf("a page gives %d: %s", w.Code, w.Body)
			}
		}
		ctx, leave := context.WithCancel(t.Context())
		leave()
		s.readSlots <- struct{}{}
		s.readSlots <- struct{}{}
		if _, err := s.readSlots.acquire(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("who has left gets %v", err)
		}
	})
}

// Answers are compressed for those who accept it.
func TestAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{"": false, "gzip": true, "br, GZIP;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0, br": false, "deflate, xgzip": false} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Encoding", header)
		if got := acceptsGzip(r); got != want {
			t.Errorf("Accept-Encoding %q is taken as %t", header, got)
		}
		w := httptest.NewRecorder()
		a := &bufferedReply{ResponseWriter: w}
		a.WriteHeader(http.StatusConflict)
		_, _ = a.Write([]byte(strings.Repeat("long ", 1000))) // it is a buffer
		a.send(r)
		if compressed := w.Header().Get("Content-Encoding") == "gzip"; compressed != want || want == (w.Body.Len() > 4000) || w.Code != http.StatusConflict || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("with Accept-Encoding %q the reply is %d, %v, of %d bytes", header, w.Code, w.Header(), w.Body.Len())
		}
	}
}
