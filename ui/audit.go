package ui

import (
	"errors"
	"net/http"
	"net/url"
	"sort"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// auditData is what the list of acts shows.
type auditData struct {
	Last []wording.Act // the last change of each queue, limit, schedule and worker, and deletions; on the first page only. The API has it as "last".
	Runs []wording.Act
	Next string // the cursor of the earlier acts; empty if there are none
}

const (
	auditSize          = 50  // the default for the largest number of acts on runs on a page
	eventsPerAuditRead = 500 // how many events are read at once
	mostAuditReads     = 4   // the largest number of reads of events for one page
)

// auditPage lists the acts of people, with actor and reason, the latest first.
func (s *dashboard) auditPage(w http.ResponseWriter, r *http.Request, v *requestView) error {
	d, err := v.auditData(r.URL.Query())
	if err != nil {
		return err
	}
	return v.writePage(w, "audit", http.StatusOK, pageFrame{Title: "Audit", Section: "/audit", Data: d})
}

func (v *requestView) auditData(q url.Values) (*auditData, error) {
	p, err := v.parsePage(q, auditSize)
	if err != nil {
		return nil, err
	}
	size := p.Limit
	p.Limit = eventsPerAuditRead
	d := new(auditData)
	if p.Cursor == "" {
		if d.Last, err = v.lastNonRunActs(); err != nil {
			return nil, err
		}
	}
	for reads, began := 0, time.Now(); reads < mostAuditReads && (reads == 0 || time.Since(began) < v.searchTime); reads++ {
		page, err := v.latestEvents(p)
		if err != nil {
			return nil, err
		}
		events, next := page.Events, page.Next
		var runs durable.RunPage
		if ids := wording.RunIDsForActs(events); len(ids) > 0 {
			if runs, err = v.listRuns(durable.Filter{RunID: ids}, durable.Page{Limit: len(ids)}); err != nil {
				return nil, err
			}
		}
		acts, room := wording.ActsOnRuns(events, runs.Runs), size-len(d.Runs)
		if len(acts) >= room { // the page ends with the event of its last act
			last := sort.Search(len(events), func(i int) bool { return len(wording.ActsOnRuns(events[:i+1], runs.Runs)) >= room })
			acts, next = acts[:room], events[last].Cursor
		}
		d.Runs = append(d.Runs, acts...)
		if p.Cursor = next; next == "" || len(d.Runs) == size {
			break
		}
	}
	d.Next = p.Cursor
	return d, nil
}

// lastNonRunActs returns the last act on each queue, limit, schedule and worker that the request may see.
func (v *requestView) lastNonRunActs() ([]wording.Act, error) {
	queues, err := v.queueList()
	if err != nil && !errors.Is(err, errQueuesHidden) {
		return nil, err
	}
	limits, err := v.limitList()
	if err != nil && !errors.Is(err, errLimitsHidden) {
		return nil, err
	}
	schedules, err := v.scheduleList()
	if err != nil && !errors.Is(err, errSchedulesHidden) {
		return nil, err
	}
	workers, err := v.workerList()
	if err != nil && !errors.Is(err, errWorkersHidden) {
		return nil, err
	}
	return wording.LastActs(queues, limits, schedules, workers), nil
}
