package ui_test

import (
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// The commands that the dashboard offers to copy call the program as it is called.
func TestCommandName(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, approval, "waits", "in")
		h := ui.Handler(e, ui.Authorize(anyone), ui.CommandName("shop durable"))
		for path, want := range map[string]string{
			"/runs?status=failed":             "shop durable list --status failed",
			"/bulk?verb=cancel&status=paused": "shop durable cancel --status paused",
			runPage("waits"):                  "shop durable get waits",
		} {
			if body := send(h, path, nil).Body.String(); !strings.Contains(body, want) {
				t.Errorf("%s has no %q: %s", path, want, body)
			}
		}
	})
}
