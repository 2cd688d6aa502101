package ui_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

var stepForm = regexp.MustCompile(`(?s)<form method="post" action="/act">(?:<input type="hidden" name="[^"]*" value="[^"]*">)*<input type="hidden" name="verb" value="([a-z]+)">.*?</form>`)

// The panel of a step forks the run from there, and each of its acts has a preview, which changes nothing.
func TestStepsHavePreviewsAndAFork(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		start(t, e, order, "done", "in")
		start(t, e, order, "bad", "declined")
		for id, verbs := range map[string][]string{"done": {"override", "rerun", "fork"}, "bad": {"skip", "fork"}} {
			forms := make(map[string]url.Values)
			page := send(h, runPage(id), nil).Body.String()
			_, panel, _ := strings.Cut(page, `<details class="step">`)
			for _, m := range stepForm.FindAllStringSubmatch(panel, -1) {
				forms[m[1]] = fieldsOf(m[0])
				if !strings.Contains(m[0], `name="dry_run" value="yes"`) {
					t.Errorf("%s has no preview: %s", m[1], m[0])
				}
			}
			for _, verb := range verbs {
				f := forms[verb]
				if f == nil {
					t.Errorf("the step of %s has no %s: %s", id, verb, panel)
					continue
				}
				f.Set("dry_run", "yes")
				if f.Has("step") && verb != "rerun" { // the forms with a value
					f.Set("value", `"by hand"`)
				}
				got := send(h, "/act", f, "Sec-Fetch-Site", "same-origin")
				if body := got.Body.String(); got.Code != http.StatusOK || !strings.Contains(body, "Preview: "+verb) || !strings.Contains(body, `>`+id+`<`) || !strings.Contains(body, "charge") {
					t.Errorf("the preview of %s gives %d: %s", verb, got.Code, body)
				}
			}
			if all, err := e.Generations(within(t), id); err != nil || len(all) > 1 {
				t.Errorf("after the previews %s has the generations %+v, %v", id, all, err)
			}
			fork := forms["fork"]
			if fork == nil {
				continue
			}
			fork.Del("dry_run")
			fork.Set("new_id", id+"-copy")
			if got := send(h, "/act", fork, "Sec-Fetch-Site", "same-origin"); got.Header().Get("Location") != runPage(id+"-copy") {
				t.Errorf("the fork gives %d: %s", got.Code, got.Body)
			}
			if run, err := e.Get(within(t), id+"-copy"); err != nil || run.RunID == "" {
				t.Errorf("the fork is %+v, %v", run, err)
			}
		}
	})
}
