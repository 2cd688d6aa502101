package ui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
	"github.com/seed8ec063be/durable/schema"
)

// Each of these reads is made at most once in its period, however many people have the overview open.
const (
	countsPeriod = 2 * time.Second
	nounsPeriod  = time.Second
)

// mostCounted bounds the runs that are counted of each status: an exact number of millions would burden the database.
const mostCounted = 1000

// statusCount is how many runs have a status.
type statusCount struct {
	Status durable.Status
	Runs   int
	More   bool // there are more than Runs
}

// Text returns the number as "1,000+".
func (n statusCount) Text() string {
	text := withThousandsCommas(n.Runs)
	if n.More {
		text += "+"
	}
	return text
}

// withThousandsCommas returns a number with commas between thousands.
func withThousandsCommas(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// statusCounts counts the visible runs by status.
func (v *requestView) statusCounts() ([]statusCount, time.Time, error) {
	if err := v.checkMayRead(Action{}); err != nil {
		return nil, time.Time{}, err
	}
	bound, some := v.restrictToVisible(durable.Filter{})
	if !some {
		return nil, v.at, nil
	}
	return readOncePerRoundOrPeriod(v, cacheKey("counts", bound), countsPeriod, func(ctx context.Context) (numbers []statusCount, err error) {
		if !v.hasLimitedVisibility() {
			counts, err := v.engine.StatusCounts(ctx)
			for _, c := range counts {
				numbers = append(numbers, statusCount{c.Status, c.Runs, c.More})
			}
			return numbers, err
		}
		for _, status := range wording.Statuses {
			f, some := intersectFilters(bound, durable.Filter{Status: []durable.Status{status}})
			if !some {
				continue
			}
			page, err := v.engine.List(ctx, f, durable.Page{Limit: mostCounted, MaxTime: v.searchTime})
			if err != nil {
				return nil, err
			}
			numbers = append(numbers, statusCount{status, len(page.Runs), page.Next != ""})
		}
		return numbers, nil
	})
}

// overviewData is what the overview shows.
type overviewData struct {
	Counts   []statusCount
	CountsAt time.Time
	Ended    *endedRunsData
	Oldest   time.Time // when the run that has waited the longest was due; zero if none waits
	Queues   []queueRow
	Workers  int // which live, as the numbers below
	Active   int
	Capacity int
	Quiet    int
	Dead     int // workers whose lease is over
	Versions []versionRow
	Schema   int
	Failures []*failureRow
	Newest   []durable.RunInfo
}

// queueRow is a queue, with or without settings.
type queueRow struct {
	durable.QueueInfo
	Unset  bool      // it has no settings, so its runs are not counted
	Oldest time.Time // when the run that has waited the longest was due; zero if none waits
}

// versionRow is how many workers have a version.
type versionRow struct {
	Version string
	Workers int
}

func (v *requestView) overviewData() (d *overviewData, err error) {
	d = &overviewData{Schema: len(schema.SQLite())} // as many as schema.Postgres() has; the engine is open, so the database has them
	if d.Counts, d.CountsAt, err = v.statusCounts(); err != nil {
		return nil, err
	}
	if d.Ended, err = v.endedRunsData(); err != nil {
		return nil, err
	}
	if d.Queues, err = v.queueRows(); err != nil {
		return nil, err
	}
	for _, q := range d.Queues {
		if !q.Oldest.IsZero() && (d.Oldest.IsZero() || q.Oldest.Before(d.Oldest)) {
			d.Oldest = q.Oldest
		}
	}
	if err := v.addWorkerSummary(d); err != nil {
		return nil, err
	}
	if d.Failures, err = v.failureGroups(durable.Filter{CreatedAfter: v.at.Add(-failuresPeriod)}, nil); err != nil {
		return nil, err
	}
	newest, err := v.listRuns(durable.Filter{Roots: true}, durable.Page{Limit: 10, MaxTime: v.searchTime})
	d.Newest = newest.Runs
	return d, err
}

// queueRows returns the queues that have settings or runs that are due.
func (v *requestView) queueRows() (rows []queueRow, err error) {
	all, err := v.queueList()
	if err != nil && !errors.Is(err, errQueuesHidden) {
		return nil, err
	}
	oldest := make(map[string]time.Time)
	if !v.hasLimitedVisibility() { // otherwise hidden runs would be among them
		due, _, err := readOncePerRoundOrPeriod(v, "due", countsPeriod, v.engine.OldestDue)
		if err != nil {
			return nil, err
		}
		for _, d := range due { // the oldest first
			if _, found := oldest[d.Queue]; !found {
				oldest[d.Queue] = d.Since
			}
		}
	}
	for _, q := range all {
		row := queueRow{QueueInfo: q, Oldest: q.OldestDue}
		if due, found := oldest[q.Name]; found && (row.Oldest.IsZero() || due.Before(row.Oldest)) {
			row.Oldest = due
		}
		delete(oldest, q.Name)
		rows = append(rows, row)
	}
	for _, name := range slices.Sorted(maps.Keys(oldest)) {
		rows = append(rows, queueRow{QueueInfo: durable.QueueInfo{Name: name}, Unset: true, Oldest: oldest[name]})
	}
	return rows, nil
}

// addWorkerSummary adds the numbers of workers, slots and versions. Everybody may see these sums.
func (v *requestView) addWorkerSummary(d *overviewData) error {
	workers, err := v.workersIncludingHidden()
	if err != nil {
		return err
	}
	all := len(workers)
	workers = slices.DeleteFunc(workers, v.IsWorkerDead)
	d.Workers, d.Dead = len(workers), all-len(workers)
	for _, w := range workers {
		d.Active, d.Capacity = d.Active+w.Active, d.Capacity+w.Capacity
		if w.Quiet {
			d.Quiet++
		}
	}
	if workers, err = v.visibleWorkers(workers); err != nil && !errors.Is(err, errWorkersHidden) {
		return err
	}
	for _, w := range workers {
		i := slices.IndexFunc(d.Versions, func(r versionRow) bool { return r.Version == w.Version })
		if i < 0 {
			i, d.Versions = len(d.Versions), append(d.Versions, versionRow{Version: w.Version})
		}
		d.Versions[i].Workers++
	}
	return nil
}
