package ui_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// A list, a bulk act and a backfill read a time without a zone in the same zone, that of the process, and the pages show which it is.
func TestTimesHaveOneZone(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		zone := time.FixedZone("", -5*60*60)
		h := ui.Handler(e, ui.Authorize(anyone), ui.Clock(func() time.Time { return time.Now().In(zone) }))
		start(t, e, approval, "waits", "in")
		local := time.Now().In(zone)
		for after, matches := range map[string]bool{local.Add(time.Hour).Format(time.DateTime): false, local.Add(-time.Hour).Format(time.DateTime): true} {
			list := send(h, "/runs?"+url.Values{"created_after": {after}}.Encode(), nil).Body.String()
			if strings.Contains(list, ">waits</a>") != matches || !strings.Contains(list, "in UTC-05:00") {
				t.Errorf("the list after %s is %s", after, list)
			}
			if page := bulkPreview(t, h, url.Values{"verb": {"terminate"}, "created_after": {after}}); strings.Contains(page, "would reach 1 run ") != matches {
				t.Errorf("the preview after %s is %s", after, page)
			}
		}
		if err := e.SetSchedule(within(t), durable.Schedule{Name: "hourly", Workflow: "order", Cron: "0 * * * *", Input: "in"}); err != nil {
			t.Fatal(err)
		}
		if page := send(h, "/schedules", nil).Body.String(); !strings.Contains(page, "in UTC-05:00") {
			t.Errorf("the page of schedules is %s", page)
		}
		post(t, h, http.StatusSeeOther, "verb", "backfill", "schedule", "hourly", "after", "2026-01-02 03:30", "before", "2026-01-02 04:30")
		fires, err := e.ScheduleFires(within(t), "hourly", durable.Page{Limit: 10})
		if err != nil || !slices.ContainsFunc(fires, func(f durable.ScheduleFire) bool { return f.At.Equal(time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC)) }) {
			t.Errorf("the fires are %+v, %v", fires, err)
		}
	})
}

// The preview of a bulk act makes all its times absolute, so that runs which end after the preview are not deleted.
func TestBulkActsKeepTheTimesOfTheirPreview(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone), ui.SearchFor(time.Minute)) // the machine may be busy
		start(t, e, order, "over", "in")
		start(t, e, approval, "waits", "in")
		fields := fieldsOf(bulkPreview(t, h, url.Values{"verb": {"delete"}, "ended_before": {"now"}, "ended_after": {"2d"}, "created_after": {"1d"}, "older_than": {"0s"}}))
		for _, name := range []string{"ended_before", "ended_after", "created_after", "created_before"} {
			if _, err := time.Parse(time.RFC3339, fields.Get(name)); err != nil {
				t.Errorf("%s is %q", name, fields.Get(name))
			}
		}
		if again := fieldsOf(bulkPreview(t, h, fields)); again.Encode() != fields.Encode() {
			t.Errorf("the preview of the frozen filter has %v, not %v", again, fields)
		}
		if _, err := e.Terminate(within(t), "waits"); err != nil {
			t.Fatal(err)
		}
		if page := bulkPortion(t, h, fields); !strings.Contains(page, "1 run deleted") {
			t.Errorf("the portion is %s", page)
		}
		if _, err := e.Get(within(t), "waits"); err != nil {
			t.Errorf("the run that ended after the preview: %v", err)
		}
	})
}
