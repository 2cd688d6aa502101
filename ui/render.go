package ui

import (
	"bytes"
	"context"
	"embed"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

//go:embed pages/*.html
var pageFiles embed.FS

// pageFrame holds the parts that every page has around its content.
type pageFrame struct {
	Title   string
	Section string // the address of the section in the navigation, such as /runs
	Notice  string // what the previous act did
	Live    bool   // the page follows changes
	LiveRun string // the run whose changes the page follows; empty if it follows all runs
	Address string // the path and query of the page
	View    *requestView
	Data    any
}

// templates returns the templates of all pages, by their names.
var templates = sync.OnceValue(func() map[string]*template.Template {
	all := make(map[string]*template.Template)
	layout := template.Must(template.New("layout").Funcs(template.FuncMap{
		// Those of one request are methods of the view.
		"text": wording.Escape, "lines": wording.EscapeLines, "exact": wording.ExactTime, "took": wording.DurationBetween, "about": wording.RoughDuration,
		"status": runStatusText, "detail": runDetailText, "payload": formatPayload, "long": isLongText, "count": wording.Count,
		"origin": wording.SettingsOrigin, "change": wording.LastChange, "changed": wording.ChangeText, "notNil": notNil,
		"queueSettingsOf": func(q durable.QueueInfo) string { return wording.QueueSettings(&q.Settings) },
		"boundsOf":        func(l durable.LimitInfo) string { return wording.LimitBounds(&l.LimitBounds) },
		"timesOf":         func(i durable.ScheduleInfo) string { return wording.ScheduleTimes(&i.Schedule) },
		"asset":           assetAddress, "join": strings.Join, "dict": dict,
	}).ParseFS(pageFiles, "pages/layout.html", "pages/parts.html"))
	entries, err := pageFiles.ReadDir("pages")
	if err != nil {
		panic(err) // the folder is embedded
	}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".html")
		if name != "layout" && name != "parts" {
			all[name] = template.Must(template.Must(layout.Clone()).ParseFS(pageFiles, "pages/"+e.Name()))
		}
	}
	return all
})

// writePage writes a page.
func (v *requestView) writePage(w http.ResponseWriter, name string, status int, f pageFrame) error {
	f.Address = v.request.URL.RequestURI()
	html, err := v.renderPage(name, f)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", htmlContentType)
	w.WriteHeader(status)
	_, _ = w.Write(html) // an error is the client's, which left
	return nil
}

const htmlContentType = "text/html; charset=utf-8"

// renderPage returns a page as HTML.
func (v *requestView) renderPage(name string, f pageFrame) ([]byte, error) {
	f.View = v
	var b bytes.Buffer
	if err := templates()[name].ExecuteTemplate(&b, "layout", &f); err != nil {
		return nil, fmt.Errorf("write page %s: %w", name, err)
	}
	return b.Bytes(), nil
}

// errorPage is what the page of an error shows.
type errorPage struct {
	Text     string
	Database bool // the database cannot be used
}

// writeError writes an error, as JSON below /api.
func (s *dashboard) writeError(w http.ResponseWriter, r *http.Request, err error) {
	status, text := httpStatus(err)
	if errors.Is(err, context.DeadlineExceeded) {
		status, text = http.StatusGatewayTimeout, fmt.Sprintf("The database did not reply within %s.", wording.RoughDuration(readTimeout))
	}
	away := status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
	if away {
		w.Header().Set("Retry-After", "5")
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		writeJSON(w, status, struct{ Error string }{text})
		return
	}
	title := http.StatusText(status)
	database := away && !errors.As(err, new(*statusError))
	if database {
		title = "The database is away"
	}
	if err := s.newRequestView(r).writePage(w, "error", status, pageFrame{Title: title, Data: errorPage{text, database}}); err != nil {
		http.Error(w, text, status)
	}
}

// URL returns the address of a path of the dashboard.
func (v *requestView) URL(path string) string { return v.prefix + path }

// RunURL returns the address of a run.
func (v *requestView) RunURL(id string) string { return v.URL(runPath(id)) }

// Age returns how long ago a time was, or how long it is until then.
func (v *requestView) Age(t time.Time) string { return wording.Age(v.at, t) }

// PastAge does what Age does, for a time that has passed.
func (v *requestView) PastAge(t time.Time) string { return wording.PastAge(v.at, t) }

// AsOf returns the time of the page.
func (v *requestView) AsOf() time.Time { return v.at }

// AllowsActs reports whether the dashboard has acts at all.
func (v *requestView) AllowsActs() bool { return !v.readOnly && v.authorize != nil }

// QueueStateOf returns the state of a queue in words.
func (v *requestView) QueueStateOf(q durable.QueueInfo) string {
	return wording.QueueState(v.PastAge, &q)
}

// ScheduleStateOf returns the state of a schedule in words.
func (v *requestView) ScheduleStateOf(i durable.ScheduleInfo) string {
	return wording.ScheduleState(v.PastAge, &i)
}

// DescribeAttempt describes a failed attempt.
func (v *requestView) DescribeAttempt(a *durable.FailedAttempt) string {
	return wording.EscapeLines(wording.Attempt(v.at, a))
}

// RunPath returns the path and query of a run.
func (v *requestView) RunPath(id string) string { return runPath(id) }

// runStatusText and runDetailText take runs and pointers to runs, as templates have either.
func runStatusText(run any) string { return wording.Status(runInfoPointer(run)) }

func runDetailText(run any) string { return wording.RunDetail(runInfoPointer(run)) }

func runInfoPointer(run any) *durable.RunInfo {
	if r, ok := run.(durable.RunInfo); ok {
		return &r
	}
	return run.(*durable.RunInfo)
}

// notNil reports whether a pointer is set.
func notNil(pointer any) bool {
	v := reflect.ValueOf(pointer)
	return v.IsValid() && !v.IsNil()
}

func runPath(id string) string { return "/run?id=" + url.QueryEscape(id) }

func assetAddress(v *requestView, name string) string {
	return v.URL("/assets/" + name + "?v=" + assets()[name].version)
}

// dict returns its arguments, keys and values in turn, as a map, for templates with several arguments.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, errors.New("dict of a key without a value")
	}
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: the key %v is no string", pairs[i])
		}
		m[key] = pairs[i+1]
	}
	return m, nil
}

// formatPayload returns JSON for people: in several lines, with control characters escaped.
func formatPayload(value jsontext.Value) string {
	lines := value.Clone()
	if err := lines.Indent(jsontext.AllowDuplicateNames(true), jsontext.WithIndent("  ")); err != nil {
		return wording.EscapeLines(string(value))
	}
	if len(lines) <= 80 || len(value) <= 80 {
		_ = lines.Compact(jsontext.AllowDuplicateNames(true)) // it was valid
	}
	return wording.EscapeJSON(string(lines))
}

// isLongText reports whether a text is folded.
func isLongText(text string) bool { return len(text) > 1200 || strings.Count(text, "\n") > 14 }

// writeJSON writes a value as the command does: names in snake_case, empty fields left out.
func writeJSON(w http.ResponseWriter, status int, value any) {
	text, err := wording.EncodeJSON(value, true)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // an error is the client's, which left
}
