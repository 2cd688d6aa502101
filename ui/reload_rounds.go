package ui

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"
)

// roundHeader is the header in which a page that loads itself again sends the ID of the reload round that its stream has named.
const roundHeader = "Durable-Round"

// roundPeriod is for how long the reads of a reload round are shared.
const roundPeriod = 5 * time.Second

// reloadRounds holds the reload rounds that a hub has started last, by their IDs. Only the reads of these rounds are shared:
// a header that a client has made up, or that comes from another process, is ignored.
type reloadRounds struct {
	mu      sync.Mutex
	process string // distinguishes the rounds of this process from those of others behind the same address
	last    int
	givenAt map[string]time.Time
}

func newReloadRounds() *reloadRounds {
	return &reloadRounds{process: rand.Text(), givenAt: make(map[string]time.Time)}
}

// startRound starts a reload round and returns its ID.
func (t *reloadRounds) startRound() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.givenAt, func(_ string, at time.Time) bool { return time.Since(at) >= roundPeriod })
	t.last++
	round := fmt.Sprintf("%s-%d", t.process, t.last)
	t.givenAt[round] = time.Now()
	return round
}

// isCurrentRound reports whether the reads of the round with this ID are still shared.
func (t *reloadRounds) isCurrentRound(round string) bool {
	_, isShared := t.findStartTime(round)
	return isShared
}

// findStartTime returns when the round with this ID began, and true, or false if its reads are no longer shared.
func (t *reloadRounds) findStartTime(round string) (at time.Time, isShared bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, given := t.givenAt[round]
	return at, given && time.Since(at) < roundPeriod
}

// reloadRound returns the ID of the reload round in which the request loads its page. It returns an empty text if the request belongs to
// no round and reads for itself, as every act does.
func (v *requestView) reloadRound() string {
	round := v.request.Header.Get(roundHeader)
	if v.request.Method != http.MethodGet || round == "" || !v.hub.rounds.isCurrentRound(round) {
		return ""
	}
	return round
}
