package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// The paths of the requests to the shop, and of the question to its desk.
const (
	pathCharge  = "/charge"
	pathRefund  = "/refund"
	pathReserve = "/reserve"
	pathRelease = "/release"
	pathShip    = "/ship"
	pathAsk     = "/ask"
)

// undoes maps the path of each request that undoes an effect to the path of the request that has
// the effect.
var undoes = map[string]string{pathRefund: pathCharge, pathRelease: pathReserve}

// account contains the effects for one order: the numbers of the receipts, by path of the request.
type account map[string][]string

// ledger is the shop's ledger. It is in the parent's memory, so it depends on no worker and on no
// database.
type ledger struct {
	mu       sync.Mutex
	accounts map[string]account // by order
	entries  map[string]entry   // by idempotency key: the request and its response
	void     map[string]bool    // path and order of effects that were undone, and that must not happen later
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

// apply executes a request once for each key, and returns the number of the receipt. It does not
// check whether the order has the same effect under another key: the audit finds that.
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
		done = len(l.accounts[order][what]) > 0 // if there is no effect to undo, the request only prevents a late effect
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

// account returns the effects for the order.
func (l *ledger) account(order string) account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := maps.Clone(l.accounts[order])
	for path, numbers := range a {
		a[path] = slices.Clone(numbers)
	}
	return a
}
