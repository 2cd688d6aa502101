package ui

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"
)

// turnHeader is the header in which a page that loads itself again sends the ID of the reload round that its stream has named.
const turnHeader = "Durable-Turn"

// turnPeriod is for how long the reads of a reload round are shared.
const turnPeriod = 5 * time.Second

// reloadRounds holds the reload rounds that a hub has started last. The ID of a round is called its turn. Only the reads of these rounds are shared:
// a header that a client has made up, or that comes from another process, is ignored.
type reloadRounds struct {
	mu      sync.Mutex
	process string // distinguishes the turns of this process from those of others behind the same address
	last    int
	givenAt map[string]time.Time
}

func newReloadRounds() *reloadRounds {
	return &reloadRounds{process: rand.Text(), givenAt: make(map[string]time.Time)}
}

// startRound starts a reload round and returns its turn.
func (t *reloadRounds) startRound() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.givenAt, func(_ string, at time.Time) bool { return time.Since(at) >= turnPeriod })
	t.last++
	turn := fmt.Sprintf("%s-%d", t.process, t.last)
	t.givenAt[turn] = time.Now()
	return turn
}

// isCurrentRound reports whether the reads of the round with this turn are still shared.
func (t *reloadRounds) isCurrentRound(turn string) bool {
	_, isShared := t.findStartTime(turn)
	return isShared
}

// findStartTime returns when the round with this turn began, and true, or false if its reads are no longer shared.
func (t *reloadRounds) findStartTime(turn string) (at time.Time, isShared bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, given := t.givenAt[turn]
	return at, given && time.Since(at) < turnPeriod
}

// reloadRound returns the turn of the reload round in which the request loads its page. It returns an empty text if the request belongs to
// no round and reads for itself, as every act does.
func (v *requestView) reloadRound() string {
	turn := v.request.Header.Get(turnHeader)
	if v.request.Method != http.MethodGet || turn == "" || !v.hub.turns.isCurrentRound(turn) {
		return ""
	}
	return turn
}
