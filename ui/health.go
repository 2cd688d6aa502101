package ui

import (
	"context"
	"net/http"
	"time"

	"github.com/seed8ec063be/durable/internal/doctor"
)

// healthPeriod is how old the findings may be. They are shared because they cost a dozen reads.
const healthPeriod = 5 * time.Second

// healthData is what the page of the health shows.
type healthData struct {
	At       time.Time
	Findings []doctor.Finding
}

// errHealthHidden is returned to requests that may not see all runs, because the findings name runs, workflows, queues and schedules of
// everybody.
var errHealthHidden = &statusError{http.StatusForbidden, "The health is not shown here, because you may not see all runs."}

// healthData returns what is wrong with the workers, runs, queues and schedules.
func (v *requestView) healthData() (d *healthData, err error) {
	if err := v.checkMayRead(Action{}); err != nil {
		return nil, err
	}
	if v.hasLimitedVisibility() {
		return nil, errHealthHidden
	}
	d = new(healthData)
	d.Findings, d.At, err = cachedRead(v.ctx(), v.periodCache, "health", healthPeriod, func(ctx context.Context) ([]doctor.Finding, error) {
		return doctor.Examine(ctx, v.engine)
	})
	return d, err
}

func (s *dashboard) healthPage(w http.ResponseWriter, _ *http.Request, v *requestView) error {
	d, err := v.healthData()
	if err != nil {
		return err
	}
	return v.writePage(w, "health", http.StatusOK, pageFrame{Title: "Health", Section: "/health", Data: d})
}
