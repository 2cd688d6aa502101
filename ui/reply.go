package ui

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/wording"
)

// bufferedReply holds the response to a request until it is complete, so that a client that reads slowly holds no place, and the whole is compressed.
type bufferedReply struct {
	http.ResponseWriter
	status   int
	body     bytes.Buffer
	rendered *renderedPage // instead of the body, if it is not nil
}

// renderedPage is a page that several requests get, so that it is compressed once.
type renderedPage struct{ html, compressed []byte }

func newRenderedPage(html []byte) *renderedPage {
	var b bytes.Buffer
	compress(&b, html)
	return &renderedPage{html, b.Bytes()}
}

// compress writes a text compressed. Errors are those of the writer.
func compress(to io.Writer, text []byte) {
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	w.Reset(to)
	_, _ = w.Write(text)
	_ = w.Close()
}

// writeRenderedPage makes a page the reply.
func (p *bufferedReply) writeRenderedPage(page *renderedPage) {
	p.Header().Set("Content-Type", htmlContentType)
	p.rendered = page
}

func (p *bufferedReply) WriteHeader(status int) {
	if p.status == 0 {
		p.status = status
	}
}

func (p *bufferedReply) Write(b []byte) (int, error) { return p.body.Write(b) }

// minCompressedSize is the size in bytes below which a reply is not compressed.
const minCompressedSize = 1000

var compressors = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// send writes the reply, compressed if the client accepts it. Errors are the client's, which left.
func (p *bufferedReply) send(r *http.Request) {
	h := p.Header()
	if p.status == 0 {
		p.status = http.StatusOK
	}
	h.Add("Vary", "Accept-Encoding")
	if page := p.rendered; page != nil {
		text := page.html
		if acceptsGzip(r) {
			h.Set("Content-Encoding", "gzip")
			text = page.compressed
		}
		h.Set("Content-Length", strconv.Itoa(len(text)))
		p.ResponseWriter.WriteHeader(p.status)
		_, _ = p.ResponseWriter.Write(text)
		return
	}
	if p.body.Len() < minCompressedSize || !acceptsGzip(r) {
		h.Set("Content-Length", strconv.Itoa(p.body.Len()))
		p.ResponseWriter.WriteHeader(p.status)
		_, _ = p.ResponseWriter.Write(p.body.Bytes())
		return
	}
	h.Set("Content-Encoding", "gzip")
	p.ResponseWriter.WriteHeader(p.status)
	compress(p.ResponseWriter, p.body.Bytes())
}

// acceptsGzip reports whether the client accepts replies that are compressed with gzip.
func acceptsGzip(r *http.Request) bool {
	for _, line := range r.Header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(coding, ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				_, weight, given := strings.Cut(params, "q=")
				q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
				return !given || err == nil && q > 0
			}
		}
	}
	return false
}

// At most maxConcurrentReads pages read the database at once, so that the dashboard takes at most this many connections of the engine's
// pool. Further pages wait for at most readSlotTimeout.
const (
	maxConcurrentReads = 2
	readSlotTimeout    = 5 * time.Second
)

// readSlots are what requests hold while they read.
type readSlots chan struct{}

// acquire waits for a place, and returns a function that gives it back.
func (p readSlots) acquire(ctx context.Context) (release func(), err error) {
	select {
	case p <- struct{}{}:
		return p.release, nil
	default:
	}
	wait := time.NewTimer(readSlotTimeout)
	defer wait.Stop()
	select {
	case p <- struct{}{}:
		return p.release, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-wait.C:
		return nil, &statusError{http.StatusServiceUnavailable, fmt.Sprintf("The dashboard is busy: %d other pages have been read for more than %s. Load this page again in a moment. Pages whose filters search through many runs take the longest.", maxConcurrentReads, wording.RoughDuration(readSlotTimeout))}
	}
}

func (p readSlots) release() { <-p }
