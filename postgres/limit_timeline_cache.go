package postgres

import (
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// A standby that lags behind can lack the row of a limit key that was used for the first time just before the promotion. So the row
// of the limit also records the timeline on which the limit was used.

// limitTimelineCache holds, for each limit, the timeline that is known to be in its row. If this is the present timeline, the row
// need not be checked again.
type limitTimelineCache struct {
	mu      sync.Mutex
	byLimit map[string]string // by limit
}

// limitsNotOnTimeline returns the limits of lines, each once, whose rows are not known to have the timeline.
func (l *limitTimelineCache) limitsNotOnTimeline(lines []store.LimitKeyState, timeline string) (names []string) {
	if timeline == "" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range lines {
		if name := lines[i].Limit; l.byLimit[name] != timeline && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// recordTimeline records that the rows of the limits have the timeline. It is called after the commit.
func (l *limitTimelineCache) recordTimeline(names []string, timeline string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byLimit == nil {
		l.byLimit = make(map[string]string)
	}
	for _, name := range names {
		l.byLimit[name] = timeline
	}
}

// clockInTx returns the time of the database's clock, or the time of the caller if that is later. The caller's time may be from
// before a promotion, because the call waited for a connection. It must not be used then, because a rate grants nothing for a period
// after the promotion.
func (s *database) clockInTx(ask roundTripFunc, now time.Time) (time.Time, error) {
	var read time.Time
	err := ask("read the clock", func(batch *pgx.Batch) { batch.Queue(s.statements.now) }, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error { return rows.Scan((*timeValue)(&read)) })
	})
	if read.After(now) {
		now = read
	}
	return now, err
}
