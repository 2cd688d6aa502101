package ui_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// A condition that the dashboard would have to drop is refused: the list, and a bulk act on it, would reach more runs than it says.
func TestFiltersThatCannotBeKeptAreRefused(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, approval, "waits", "in", durable.Tag("tenant.id", "a"))
		h := ui.Handler(e, ui.Authorize(anyone))
		for _, q := range []string{
			"tag=tenant.id%3D", "tag=%3Da", "tag=%3D", "tag=tenant.id&tag=team.owner", "workflow=approval&workflow=order", "created_after=1h&created_after=2h",
			"status=live&failed_step=charge", "failed_type=x", "failed_type=x&failed_step=charge", "workflow=order&failed_step=charge", "workflow=order&failed_step=-", "held=perhaps", "roots=0", "held=no&held=yes&held=yes",
		} {
			for _, path := range []string{"/runs?", "/api/v1/runs?", "/bulk?verb=delete&created_before=now&"} {
				if got := send(h, path+q, nil); got.Code != http.StatusBadRequest {
					t.Errorf("%s%s gives %d", path, q, got.Code)
				}
			}
		}
		if got := send(h, "/bulk?verb=terminate&status=live&older-than=2d", nil); got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), "older-than") {
			t.Errorf("a bulk act with an unknown condition gives %d: %s", got.Code, got.Body)
		}
		for _, path := range []string{"/api/v1/runs?", "/api/v1/failures?", "/api/v1/bulk?verb=retry&"} {
			if got := send(h, path+"status=live&worklow=order", nil); got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), "worklow") {
				t.Errorf("%s with an unknown condition gives %d: %s", path, got.Code, got.Body)
			}
		}
		for _, q := range []string{"tag=tenant.id", "tag=tenant.id%3Da", "tag=&tag=tenant.id", "workflow=&failed_step=&failed_type="} {
			if got := send(h, "/runs?"+q, nil); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), ">waits</a>") {
				t.Errorf("/runs?%s gives %d: %s", q, got.Code, got.Body)
			}
		}
	})
}

var (
	formOfFilter = regexp.MustCompile(`(?s)<form class="filter".*?</form>`)
	formField    = regexp.MustCompile(`<input(?: type="[a-z]*")? name="([^"]*)"(?: placeholder="[^"]*")? value="([^"]*)"( checked)?`)
)

// The form of the list sends every condition of the filter again.
func TestTheFormKeepsTheWholeFilter(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e)
		worker, parents := "7a1ad4ac-7c4e-4b0f-8d5c-0d3f6f6c7a10", []string{"7a1ad4ac-7c4e-4b0f-8d5c-0d3f6f6c7a11", "7a1ad4ac-7c4e-4b0f-8d5c-0d3f6f6c7a12"}
		for _, q := range []url.Values{
			{"workflow": {"w"}, "status": {"failed", "live"}, "queue": {"q"}, "key": {"k"}, "tag": {"a.b=c"}, "id_prefix": {"p"}, "priority": {"1", "2"}, "older_than": {"2d"}, "created_after": {"9d"}, "created_before": {"1d"}, "run_version": {"v"}, "worker": {worker}, "ended_after": {"3d"}, "ended_before": {"1d"}, "roots": {"yes"}},
			{"parent": parents},
			{"held": {"yes"}},
			{"workflow": {"w"}, "failed_step": {"s"}, "failed_type": {"t"}},
			{"workflow": {"w"}, "failed_type": {"t"}},
		} {
			got := send(h, "/runs?"+q.Encode(), nil)
			if got.Code != http.StatusOK {
				t.Errorf("%v gives %d: %s", q, got.Code, got.Body)
			}
			form, kept := formOfFilter.FindString(got.Body.String()), make(url.Values)
			for _, m := range formField.FindAllStringSubmatch(form, -1) {
				if value := html.UnescapeString(m[2]); value != "" && (m[3] != "" || !slices.Contains([]string{"status", "held", "roots"}, m[1])) {
					kept.Add(m[1], value)
				}
			}
			slices.Sort(kept["status"])
			slices.Sort(q["status"])
			if fmt.Sprint(kept) != fmt.Sprint(q) {
				t.Errorf("the form of %v has %v: %s", q, kept, form)
			}
		}
	})
}

// A condition that is yes or no means the same as the flag of the command with true or false.
func TestFlagsOfFiltersCanBeNo(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, approval, "waits", "in")
		start(t, e, family, "parent", "shown")
		h := ui.Handler(e, ui.Authorize(anyone))
		count := func(path string) int { return strings.Count(send(h, path, nil).Body.String(), `"run_id"`) }
		until(t, func() bool { return count("/api/v1/runs?workflow=approval") == 2 }) // the second is a child
		for q, want := range map[string]int{
			"held=no": 2, "held=false": 2, "held=yes": 0, "held=true": 0, "held=": 2,
			"roots=no": 2, "roots=false": 2, "roots=yes": 1, "roots=true": 1,
		} {
			for _, path := range []string{"/api/v1/runs?workflow=approval&", "/api/v1/bulk?verb=cancel&workflow=approval&"} {
				if got := count(path + q); got != want {
					t.Errorf("%s%s has %d runs, not %d", path, q, got, want)
				}
			}
		}
		if got := send(h, "/bulk?verb=cancel&held=no", nil); got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), "chooses nothing") {
			t.Errorf("a bulk act for which held=no is the only condition gives %d: %s", got.Code, got.Body)
		}
		if body := send(h, "/runs?workflow=approval&roots=no", nil).Body.String(); strings.Contains(body, "--roots") || strings.Contains(body, " checked") {
			t.Errorf("the list without roots offers them: %s", body)
		}
	})
}

// The step - of a group of failures means that the function failed by itself, as in the command.
func TestTheStepOfAGroupCanBeADash(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		if _, err := approval.Start(within(t), e, "in", durable.ID("late"), durable.Timeout(time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		var groups []durable.FailureGroup
		until(t, func() (found bool) {
			var err error
			if groups, err = e.Failures(within(t), durable.Filter{}); err != nil {
				t.Fatal(err)
			}
			return len(groups) == 1
		})
		if groups[0].Step != "" {
			t.Fatalf("the group has the step %q", groups[0].Step)
		}
		h := ui.Handler(e, ui.Authorize(anyone))
		for step, want := range map[string]int{"-": 1, "": 1, "charge": 0} {
			q := url.Values{"workflow": {"approval"}, "failed_type": {groups[0].Type}, "failed_step": {step}}
			if body := send(h, "/api/v1/runs?"+q.Encode(), nil).Body.String(); strings.Count(body, `"run_id"`) != want {
				t.Errorf("the group with the step %q has not %d runs: %s", step, want, body)
			}
		}
	})
}
