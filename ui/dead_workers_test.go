package ui

import (
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// The page of workers says that runs wait if there are only dead workers, as if there is none.
func TestOnlyDeadWorkers(t *testing.T) {
	t.Parallel()
	now := time.Now()
	v := &requestView{dashboard: Handler(nil).(*dashboard), at: now}
	for name, c := range map[string]struct {
		workers []durable.WorkerInfo
		warns   bool
	}{
		"none":      {nil, true},
		"dead":      {[]durable.WorkerInfo{{Name: "a", DeadAt: now.Add(-time.Hour)}}, true},
		"one lives": {[]durable.WorkerInfo{{Name: "a", DeadAt: now.Add(-time.Hour)}, {Name: "b", DeadAt: now.Add(time.Minute)}}, false},
	} {
		html, err := v.renderPage("workers", pageFrame{Title: "Workers", Data: c.workers})
		if err != nil || strings.Contains(string(html), "No worker lives") != c.warns {
			t.Errorf("%s: %v, %s", name, err, html)
		}
	}
}
