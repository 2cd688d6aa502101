package ui_test

import (
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// Why a run is held is the text of an error, so Redact changes it wherever it is shown. The reason of a person who paused a run stays.
func TestRedactChangesWhyARunIsHeld(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		other := durable.Define("approval", func(*durable.Ctx, int) (string, error) { return "", nil })
		run, err := other.Start(within(t), e, 1) // which the worker's approval does not decode
		if err != nil {
			t.Fatal(err)
		}
		until(t, func() bool {
			info, err := e.Get(within(t), run.ID())
			if err != nil {
				t.Fatal(err)
			}
			return info.Diverged
		})
		start(t, e, approval, "paused", "in")
		if _, err := e.Pause(within(t), "paused", durable.Reason("it does not decode")); err != nil {
			t.Fatal(err)
		}
		redact := ui.Redact(func(f ui.Field) string {
			if f.Kind == ui.FieldError {
				return strings.ReplaceAll(f.Value, "decode", "******")
			}
			return f.Value
		})
		id := "?id=" + run.ID()
		for _, path := range []string{"/run" + id, "/api/v1/run" + id, "/api/v1/divergences" + id, "/api/v1/tree" + id, "/api/v1/runs?held=yes", "/runs?held=yes", "/events", "/api/v1/events", "/api/v1/latest_events"} {
			if body := send(ui.Handler(e), path, nil).Body.String(); !strings.Contains(body, "not decode") {
				t.Errorf("%s does not say why the run is held: %s", path, body)
			}
			body := strings.ReplaceAll(send(ui.Handler(e, redact), path, nil).Body.String(), "it does not decode", "") // events have the reason of the person too
			if strings.Contains(body, "decode") || !strings.Contains(body, "******") {
				t.Errorf("%s is not redacted: %s", path, body)
			}
		}
		if body := send(ui.Handler(e, redact), "/api/v1/run?id=paused", nil).Body.String(); !strings.Contains(body, "it does not decode") {
			t.Errorf("the reason of a person is redacted: %s", body)
		}
	})
}
