package ui

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"
)

// turnHeader is the header by which a page that loads itself again names the turn of its stream.
const turnHeader = "Durable-Turn"

// turnPeriod is for how long the reads of a turn are shared.
const turnPeriod = 5 * time.Second

// reloadRounds are the turns that a hub gave last. Only these are shared: a header that a client has made up, or that another process has given, is ignored.
type reloadRounds struct {
	mu      sync.Mutex
	process string // distinguishes the turns of this process from those of others behind the same address
	last    int
	givenAt map[string]time.Time
}

func newReloadRounds() *reloadRounds {
	return &reloadRounds{process: rand.Text(), givenAt: make(map[string]time.Time)}
}

// startRound returns a new turn.
func (t *reloadRounds) startRound() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.givenAt, func(_ string, at time.Time) bool { return time.Since(at) >= turnPeriod })
	t.last++
	turn := fmt.Sprintf("%s-%d", t.process, t.last)
	t.givenAt[turn] = time.Now()
	return turn
}

// isCurrentRound reports whether the reads of a turn are shared.
func (t *reloadRounds) isCurrentRound(turn string) bool {
	_, isShared := t.findStartTime(turn)
	return isShared
}

// findStartTime returns when a turn was given whose reads are shared, or false.
func (t *reloadRounds) findStartTime(turn string) (at time.Time, isShared bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, given := t.givenAt[turn]
	return at, given && time.Since(at) < turnPeriod
}

// reloadRound returns the turn in which the request loads its page; empty means it reads for itself, as every act does.
func (v *requestView) reloadRound() string {
	turn := v.request.Header.Get(turnHeader)
	if v.request.Method != http.MethodGet || turn == "" || !v.hub.turns.isCurrentRound(turn) {
		return ""
	}
	return turn
}
