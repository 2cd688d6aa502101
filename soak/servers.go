package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	_ "embed"

	"github.com/seed8ec063be/durable/internal/pgtest"
)

//go:embed terminate.sql
var terminateQuery string

//go:embed replicated.sql
var replicatedQuery string

// servers holds two PostgreSQL servers: a primary, and its synchronous standby. A failover swaps them. The address of
// the place names both.
//
// Every acknowledged write is on the standby when the standby is promoted: before a failover
// begins, synchronous_standby_names is set and the standby has caught up. The setting is emptied
// only while the primary stays the primary.
type servers struct {
	address string // addresses of both servers
	rand    *rand.Rand

	immediate, terminated, away, blocked, failovers int

	primary, standby *pgtest.Server // only run uses them after it has begun
	promotions       atomic.Int64   // number of promotions that have begun
}

const (
	// standbyName is the name of whichever server is the standby.
	standbyName = "standby"
	// longestFault is how long a fault may take, with the time until both servers are up again.
	longestFault = 2 * time.Minute
)

// startServers starts a primary and a synchronous standby.
func startServers(ctx context.Context, seed uint64) (*servers, error) {
	primary, err := pgtest.Start(ctx, pgtest.Options{Settings: map[string]string{
		"wal_keep_size": "128MB", // for a standby that comes back after a checkpoint
	}})
	if err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	s := &servers{primary: primary, rand: rand.New(rand.NewPCG(seed, 2))}
	if s.standby, err = primary.Standby(ctx, standbyName); err == nil {
		s.address = pgtest.Sockets(primary, s.standby)
		err = s.synchronize(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// synchronize waits until the standby has all data, and then makes commits wait for the standby.
func (s *servers) synchronize(ctx context.Context) error {
	if err := s.primary.WaitUntilCaughtUp(ctx, standbyName); err != nil {
		return err
	}
	return s.primary.RequireSynchronous(ctx, standbyName)
}

// close stops both servers and deletes their data.
func (s *servers) close() error {
	err := s.primary.Close()
	if s.standby != nil {
		err = errors.Join(err, s.standby.Close())
	}
	return err
}

// injectFaults injects faults into the servers until ctx ends, each kind at least once. It completes the
// last fault: when it returns, both servers are up, and commits wait for the standby again.
func (s *servers) injectFaults(ctx context.Context) error {
	kinds := []func(context.Context) error{s.failOver, s.stopStandby, s.stopImmediately, s.terminate}
	first := s.rand.Perm(len(kinds))
	kinds = append(kinds, s.failOver, s.stopStandby) // twice as often as the others
	for n := 0; sleepCtx(ctx, time.Duration(300+s.rand.IntN(3500))*time.Millisecond) == nil; n++ {
		kind := s.rand.IntN(len(kinds))
		if n < len(first) {
			kind = first[n]
		}
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestFault)
		err := kinds[kind](bounded)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// terminate ends the connections of all workers and of the controller.
func (s *servers) terminate(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.primary.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var n int
	if err := conn.QueryRow(ctx, terminateQuery).Scan(&n); err != nil {
		return err
	}
	s.terminated += n
	return nil
}

// stopImmediately stops the primary in immediate mode, and starts it again.
func (s *servers) stopImmediately(ctx context.Context) error {
	if err := s.primary.Stop(pgtest.Immediate); err != nil {
		return err
	}
	s.immediate++
	_ = sleepCtx(ctx, time.Duration(50+s.rand.IntN(500))*time.Millisecond)
	return s.primary.Restart(ctx)
}

// stopStandby stops the standby, and starts it again. Every second time synchronous_standby_names is emptied
// before, as an operator does, so that nothing waits; otherwise commits wait until the standby is back.
func (s *servers) stopStandby(ctx context.Context) error {
	s.away++
	waits := s.away%2 == 0
	if waits {
		s.blocked++
	} else if err := s.primary.RequireSynchronous(ctx); err != nil {
		return err
	}
	if err := s.standby.Stop(pgtest.Fast); err != nil {
		return err
	}
	_ = sleepCtx(ctx, time.Duration(300+s.rand.IntN(2500))*time.Millisecond)
	if err := s.standby.Restart(ctx); err != nil || waits {
		return err
	}
	return s.synchronize(ctx)
}

// failOver ends the primary, promotes the standby, and makes the former primary a standby of the new one. In turns
// the primary is killed, is frozen for a while before, or is killed while the standby is away, with commits that
// only the primary has.
func (s *servers) failOver(ctx context.Context) error {
	delay := time.Duration(200+s.rand.IntN(2000)) * time.Millisecond
	if err := s.primary.WaitUntilCaughtUp(ctx, standbyName); err != nil {
		return err
	}
	var err error
	switch s.failovers % 3 {
	case 0:
		err = s.primary.Kill9()
	case 1:
		err = s.primary.Freeze()
		_ = sleepCtx(ctx, delay)
	case 2:
		if err = s.standby.Stop(pgtest.Fast); err != nil {
			return err
		}
		_ = sleepCtx(ctx, delay)
		err = errors.Join(s.primary.Kill9(), s.standby.Restart(ctx))
	}
	s.promotions.Add(1)
	if err == nil {
		err = s.standby.Promote(ctx)
	}
	if err == nil && s.primary.Pid() != 0 { // the primary is frozen
		err = s.primary.Kill9()
	}
	if err != nil {
		return fmt.Errorf("fail over: %w", err)
	}
	s.failovers++
	s.primary, s.standby = s.standby, s.primary
	_ = sleepCtx(ctx, delay/4) // without a standby
	if err := s.standby.Follow(ctx, s.primary, standbyName); err != nil {
		return err
	}
	return s.synchronize(ctx)
}

// replicated calls read, and reports whether the standby has everything that was read, so that no
// failover takes it back. If not, the caller repeats the call: the server may have shown a commit
// whose wait for the standby was cancelled.
func (s *servers) replicated(ctx context.Context, pool *pgxpool.Pool, read func() error) (bool, error) {
	before := s.promotions.Load()
	if err := read(); err != nil {
		return true, err
	}
	bounded, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := pool.Exec(bounded, replicatedQuery)
	return err == nil && s.promotions.Load() == before, nil
}
