package main

import (
	"fmt"
	"math/rand/v2"
)

// fate says how an order ends.
type fate uint8

const (
	approved  fate = iota
	refused        // by a human
	withdrawn      // by the customer: its run is cancelled
)

func (f fate) String() string { return [...]string{"approved", "refused", "withdrawn"}[f] }

// order is one order, with what the parent does to it.
type order struct {
	Order
	fate     fate
	held     bool // paused before the human decides, and resumed afterwards
	contrary bool // another human sends the opposite decision, too late
	absent   bool // its strike decides, and no human does
	regret   bool // a human approves it, although its strike cancels it
}

// twist says what else happens when a worker is killed.
type twist uint8

const (
	plain      twist = iota
	withdraws        // the order is cancelled before another worker can take it over
	stocktakes       // all orders are paused before the kill, and resumed afterwards
	closes           // all workers are killed; the order is approved while no worker lives
)

// plannedKill is one kill of the worker whose request is held.
type plannedKill struct {
	at    string // path of the held request; empty: the order waits for its approval
	lost  bool   // the request has taken effect, and only its response is lost
	then  string // path of the request that another worker must send
	fate  fate   // the fate of an order for which then is sent
	twist twist

	order string // ID of the order whose worker is killed
	place []*order
}

// plannedKills contains a kill at every stage of an order, before and after each effect.
var plannedKills = []plannedKill{
	{at: pathCharge, then: pathCharge},
	{at: pathCharge, then: pathCharge, lost: true},
	{at: pathReserve, then: pathReserve, lost: true, fate: refused},
	{at: pathAsk, then: pathAsk, lost: true},
	{at: pathCharge, then: pathRefund, lost: true, fate: withdrawn, twist: withdraws},
	{then: pathShip, twist: closes},
	{at: pathShip, then: pathShip},
	{at: pathReserve, then: pathReserve, twist: stocktakes},
	{at: pathShip, then: pathShip, lost: true},
	{at: pathShip, then: pathRelease, fate: withdrawn, twist: withdraws},
	{at: pathRelease, then: pathRelease, lost: true, fate: withdrawn},
	{at: pathRefund, then: pathRefund, fate: refused},
	{at: pathRefund, then: pathRefund, lost: true, fate: refused},
}

// plan creates n orders. It assigns each strike the order whose worker is killed, and the orders
// that are started with it.
func plan(n int, seed uint64) ([]*order, []plannedKill, error) {
	if n < len(plannedKills) {
		return nil, nil, fmt.Errorf("%d orders are too few for %d strikes", n, len(plannedKills))
	}
	chance := rand.New(rand.NewPCG(seed, 0))
	orders := make([]*order, n)
	for i := range orders {
		o := &order{Order: Order{ID: fmt.Sprintf("order-%02d", i+1), Cents: 100 + chance.IntN(50_000)}}
		switch p := chance.IntN(100); {
		case p < 50:
			o.fate = approved
		case p < 80:
			o.fate = refused
		default:
			o.fate = withdrawn
		}
		o.held = o.fate != withdrawn && chance.IntN(3) == 0
		o.contrary = o.fate != withdrawn && chance.IntN(4) == 0
		orders[i] = o
	}
	strikes := make([]plannedKill, len(plannedKills))
	for i, s := range plannedKills {
		s.place = orders[i*n/len(plannedKills) : (i+1)*n/len(plannedKills)]
		victim := s.place[0]
		victim.fate, victim.absent, victim.regret = s.fate, s.twist == closes, s.twist == withdraws
		alone := s.fate != withdrawn && !victim.absent
		victim.held, victim.contrary = victim.held && alone, victim.contrary && alone
		s.order = victim.ID
		strikes[i] = s
	}
	return orders, strikes, nil
}
