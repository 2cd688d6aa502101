package ui

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/seed8ec063be/durable"
)

// Link adds a link to the pages of runs, for example to their traces or logs. The template is an address with placeholders: {id}, {run_id}, {workflow},
// {queue}, {version}, {worker}, and {from} and {to}, which are the start and the end of the run, in milliseconds since 1970.
// The values of placeholders are escaped. Pages show links in the order of the options.
//
//	ui.Link("Logs", "https://grafana.example/explore?query=durable_run_id%3D{run_id}&from={from}&to={to}")
func Link(title, template string) Option {
	return func(s *dashboard) error {
		for _, name := range placeholder.FindAllString(template, -1) {
			if _, ok := linkPlaceholderValues(new(durable.RunInfo), 0)[name]; !ok {
				return fmt.Errorf("the link %q has the placeholder %s, which does not exist: docs/dashboard.md lists them", title, name)
			}
		}
		address, err := url.Parse(placeholder.ReplaceAllString(template, "x"))
		if err != nil || title == "" || address.Scheme != "https" && address.Scheme != "http" && !(address.Scheme == "" && address.Host == "" && strings.HasPrefix(template, "/")) {
			return fmt.Errorf("the link %q leads to %q: give it a title, and an address that begins with https://, http:// or /", title, template)
		}
		s.links = append(s.links, keyValue{title, template})
		return nil
	}
}

var placeholder = regexp.MustCompile(`\{[a-z_]*\}`)

// linkPlaceholderValues returns the values of the placeholders. now is in milliseconds since 1970.
func linkPlaceholderValues(r *durable.RunInfo, now int64) map[string]string {
	to := now
	if !r.EndedAt.IsZero() {
		to = r.EndedAt.UnixMilli() + 1
	}
	return map[string]string{
		"{id}": r.ID, "{run_id}": r.RunID, "{workflow}": r.Workflow, "{queue}": r.Queue, "{version}": r.Version, "{worker}": r.Owner,
		"{from}": strconv.FormatInt(r.CreatedAt.UnixMilli(), 10), "{to}": strconv.FormatInt(to, 10),
	}
}

// runLinks returns the titles and addresses of a run's links.
func (v *requestView) runLinks(r *durable.RunInfo) (links []keyValue) {
	values := linkPlaceholderValues(r, v.at.UnixMilli())
	for _, l := range v.links {
		address := placeholder.ReplaceAllStringFunc(l.Value, func(name string) string {
			return strings.ReplaceAll(url.QueryEscape(values[name]), "+", "%20") // fits a path and a query
		})
		links = append(links, keyValue{l.Key, address})
	}
	return links
}
