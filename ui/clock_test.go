package ui_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// Pages compare the times of the database with its clock, so a worker is not late because the clock of this process is ahead.
func TestPagesHaveTheTimeOfTheDatabase(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		for ctx := within(t); ; runtime.Gosched() {
			if workers, err := e.Workers(ctx); err != nil {
				t.Fatal(err)
			} else if len(workers) > 0 {
				break
			}
		}
		for _, ahead := range []time.Duration{40 * time.Second, -40 * time.Second} {
			h := ui.Handler(e, ui.Clock(func() time.Time { return time.Now().Add(ahead) }))
			if body := send(h, "/workers", nil).Body.String(); !strings.Contains(body, `<td class="when">`) || strings.Contains(body, "when error") || strings.Contains(body, "40s ago") || strings.Contains(body, "in 40s") {
				t.Errorf("with a clock that is %v ahead: %s", ahead, body)
			}
		}
	})
}
