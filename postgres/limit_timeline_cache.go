package postgres

import (
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// A standby that lags behind can lack the whole line of a limit and a key, which was used for the first time just before the
// promotion. So the row of a limit, too, has the timeline on which it was used.

// limitTimelineCache are the limits whose rows have the present timeline of the database. Their rows need not be looked at again.
type limitTimelineCache struct {
	mu      sync.Mutex
	byLimit map[string]string // by limit
}

// limitsNotOnTimeline returns the limits of lines, each once, that are not known to have the timeline.
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

// clockInTx returns the time of the database's clock, or the time of the caller if that is later. The caller's time may be before a
// promotion, because the call waited for a connection. A rate is closed for one period from the promotion on.
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
