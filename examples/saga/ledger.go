package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// The requests that the shop takes, and the one that goes to its desk.
const (
	pathCharge  = "/charge"
	pathRefund  = "/refund"
	pathReserve = "/reserve"
	pathRelease = "/release"
	pathShip    = "/ship"
	pathAsk     = "/ask"
)

// undoes says which request takes back which.
var undoes = map[string]string{pathRefund: pathCharge, pathRelease: pathReserve}

// account is what took effect for one order: the receipts' numbers by the request's path.
type account map[string][]string

// ledger is the shop's books. It is kept in the parent's memory: no worker and no database
// has a part in it.
type ledger struct {
	mu       sync.Mutex
	accounts map[string]account // by order
	entries  map[string]entry   // by key: what was asked under it, and the answer
	void     map[string]bool    // path and order of what was undone, and must not come after
	last     int
}

type entry struct{ path, order, number string }

func newLedger() *ledger {
	return &ledger{accounts: make(map[string]account), entries: make(map[string]entry), void: make(map[string]bool)}
}

var (
	errReused = errors.New("the key was used for something else")
	errVoid   = errors.New("it has been undone before it came")
)

// apply does what is asked, once for each key, and answers the receipt's number. It does
// not look whether the order has one under another key: that is for the audit to find.
func (l *ledger) apply(path, order, key string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.entries[key]; ok {
		if known.path != path || known.order != order {
			return "", fmt.Errorf("%w: %s of %s", errReused, known.path, known.order)
		}
		return known.number, nil
	}
	if l.void[path+order] {
		return "", errVoid
	}
	done := true
	if what, ok := undoes[path]; ok {
		l.void[what+order] = true
		done = len(l.accounts[order][what]) > 0 // else it only keeps that from coming late
	}
	var number string
	if done {
		l.last++
		number = fmt.Sprintf("%s-%d", path[1:], l.last)
		if l.accounts[order] == nil {
			l.accounts[order] = make(account)
		}
		l.accounts[order][path] = append(l.accounts[order][path], number)
	}
	l.entries[key] = entry{path, order, number}
	return number, nil
}

// account answers what took effect for the order.
func (l *ledger) account(order string) account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := maps.Clone(l.accounts[order])
	for path, numbers := range a {
		a[path] = slices.Clone(numbers)
	}
	return a
}
