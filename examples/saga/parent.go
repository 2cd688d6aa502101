package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/examples/internal/fleet"
)

// session holds everything that lives in the parent process.
type session struct {
	began    time.Time
	orders   []*order
	strikes  []plannedKill
	engine   *durable.Engine // a client: it executes nothing
	checkout *durable.Workflow[Order, Receipt]
	ledger   *ledger
	stub     *stub
	desk     *desk
	operator *operator
	crew     *workerPool
	follower *follower
}

// saga is the main function of the parent process. It runs the shop and the humans, and kills
// workers.
func saga(ctx context.Context, store string, orders, workers int, seed uint64) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	folder, err := os.MkdirTemp("", "durable-saga-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	where, done, err := fleet.Provide("saga", store, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	database, err := where.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()

	s := &session{began: time.Now(), checkout: defineCheckout(client{}), ledger: newLedger()}
	if s.orders, s.strikes, err = plan(orders, seed); err != nil {
		return err
	}
	if s.engine, err = durable.New(database, durable.Config{}); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	url := "http://" + listener.Addr().String()
	s.desk = newDesk(ctx, s.engine, s.orders, seed, url, fail)
	s.stub = newStub(s.ledger, seed, s.desk.ask, fail)
	s.operator = &operator{engine: s.engine, counts: s.stub.counts}
	s.desk.operator = s.operator
	s.crew = newCrew(where, url, workers, fail)
	s.follower = newFollower(s.engine, orders)

	mux := http.NewServeMux()
	s.stub.routes(mux)
	mux.HandleFunc("POST "+pathApprove, s.desk.approve)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: soon}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		if ctx.Err() != nil {
			err = context.Cause(ctx) // the first failure, in any goroutine
		}
		err = errors.Join(err, s.crew.stop(), server.Close())
		fail(err)
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
		s.desk.humans.Wait()
	}()
	fmt.Printf("%d orders, %d worker processes, on %s, -seed=%d\n\n", orders, workers, store, seed)
	return s.execute(ctx, fail)
}

// execute runs the saga from the first order to the last line.
func (s *session) execute(ctx context.Context, fail func(error)) error {
	following := make(chan struct{})
	watching, stop := context.WithCancel(ctx)
	defer func() { stop(); <-following }()
	go func() {
		defer close(following)
		if err := s.follower.follow(watching); err != nil && watching.Err() == nil {
			fail(err)
		}
	}()
	if err := s.crew.fill(); err != nil {
		return err
	}
	failed := s.executeKills(ctx)
	_, late := await(ctx, following, "not every order came to its end")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	stop()
	<-following
	s.desk.humans.Wait()
	if err := s.crew.stop(); err != nil {
		return err
	}
	return errors.Join(failed, late, s.conclude(ctx, late == nil))
}

// executeKills executes the strikes. After a failed strike it kills no more workers, but it starts
// all orders, because the ledger is audited in any case.
func (s *session) executeKills(ctx context.Context) (failed error) {
	for _, k := range s.strikes {
		if failed == nil {
			if err := s.killWorker(ctx, k); err != nil {
				failed = fmt.Errorf("a strike at %s%s: %w", k.order, s.state(ctx, k.order), err)
				s.say("%v", failed)
				s.stub.set(nil)
				failed = errors.Join(failed, s.crew.fill())
			}
		} else if err := s.withoutKill(ctx, k); err != nil {
			return errors.Join(failed, err)
		}
	}
	return failed
}

// conclude audits the orders, and prints the last line.
func (s *session) conclude(ctx context.Context, followed bool) error {
	live, err := s.operator.live(ctx)
	if err != nil {
		return err
	}
	ends := make([]end, len(s.orders))
	for i, o := range s.orders {
		if ends[i], err = s.end(ctx, o); err != nil {
			return err
		}
	}
	t := audit(ends, live, s.crew.kills)
	for _, run := range live {
		t.blame(run.ID, "where it stands:%s", s.state(ctx, run.RunID))
	}
	for _, e := range ends {
		if told := string(s.follower.ended[e.run.RunID]); followed && told != string(e.run.Status) {
			t.blame(e.order.ID, "it is %s, and its last event says %q", e.run.Status, told)
		}
	}
	for _, k := range s.strikes {
		tree, err := s.engine.Tree(ctx, k.order)
		if err != nil {
			return err
		}
		if k.at != "" && s.follower.countTakeovers(tree) == 0 {
			t.blame(k.order, "its worker was killed, and no event says so")
		}
	}
	s.say("%d requests to the shop, %d receipts", s.stub.total(), s.ledger.last)
	fmt.Printf("\n%v\n", t)
	return t.verdict()
}

// end reads how an order ended.
func (s *session) end(ctx context.Context, o *order) (e end, err error) {
	e = end{order: o, account: s.ledger.account(o.ID)}
	if e.run, err = s.engine.Get(ctx, o.ID); err != nil {
		return e, err
	}
	switch e.run.Status {
	case durable.StatusCompleted, durable.StatusFailed, durable.StatusCancelled, durable.StatusExpired:
		handle, err := s.checkout.Handle(ctx, s.engine, o.ID)
		if err != nil {
			return e, err
		}
		e.receipt, e.err = handle.Result(ctx)
	}
	return e, nil
}

// start starts the runs of the orders.
func (s *session) start(ctx context.Context, orders []*order) error {
	items := make([]durable.StartItem[Order], len(orders))
	for i, o := range orders {
		items[i] = durable.StartItem[Order]{ID: o.ID, Input: o.Order}
	}
	_, err := s.checkout.StartMany(ctx, s.engine, items)
	return err
}

// state describes the state of a run for readers.
func (s *session) state(ctx context.Context, id string) string {
	run, err := s.engine.Get(ctx, id)
	if err != nil {
		return ""
	}
	text := fmt.Sprintf(" (%s, asked %q, epoch %d, crashes %d, wake at %v", run.Status, run.Requested, run.Epoch, run.Crashes, run.WakeAt)
	for _, w := range run.OpenCalls {
		text += fmt.Sprintf(", %s %s attempt %d", w.Kind, w.Name, w.Attempts)
	}
	return text + ")"
}

// say prints a line with the time since the beginning.
func (s *session) say(format string, args ...any) {
	fmt.Printf("%5.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}
