package durablecli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
	"github.com/seed8ec063be/durable/postgres"
)

// checkPools implements inspectedDatabase. It compares the connections that the stores of the live workers may open with those that the server has.
func (p *inspectedPostgres) checkPools(workers []durable.WorkerInfo, now time.Time) []finding {
	const check = "pools"
	stores := countStores(workers, now)
	most := stores * postgres.MaxOwnConns
	text := fmt.Sprintf("the stores of %s open up to %d connections, besides the pools for Tx; the server has %d", wording.Count(stores, "process", "processes"), most, p.maxConnections)
	if most <= p.maxConnections {
		return []finding{newFinding(fine, check, text, "")}
	}
	return []finding{newFinding(warning, check, text, fmt.Sprintf(
		"under load, calls wait for the connections that there are: raise max_connections above %d and what other programs use, let fewer workers execute more runs (Config.Concurrency), or use a pooler. Behind a pooler, its limits apply and not this one", most,
	))}
}

// countStores returns how many stores the live workers use. Several workers of a process may share a store, so those whose name is that of their
// host and process count once.
func countStores(workers []durable.WorkerInfo, now time.Time) int {
	stores := make(map[string]bool)
	for i := range workers {
		w := &workers[i]
		if wording.IsWorkerDead(now, w) {
			continue
		}
		key := w.ID
		if _, process, found := strings.Cut(w.Name, ":"); found {
			if _, err := strconv.ParseUint(process, 10, 32); err == nil { // the default of Config.Name
				key = w.Name
			}
		}
		stores[key] = true
	}
	return len(stores)
}

// checkPools implements inspectedDatabase. SQLite has no server whose connections could be used up.
func (q *inspectedSQLite) checkPools([]durable.WorkerInfo, time.Time) []finding { return nil }
