package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
)

func init() {
	scenarios["sender"] = sendAll
	scenarios["receiver"] = func(ctx context.Context, j *job, s durable.Store) error {
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{inbox(j.Ledger)}, ParkAfter: 30 * time.Millisecond})
		if err != nil {
			return err
		}
		return e.Run(ctx)
	}
}

const (
	inboxes    = 4
	senders    = 3  // in each of two processes
	perSender  = 80 // signals, to the inboxes in turn
	perInbox   = 2 * senders * perSender / inboxes
	duplicates = 12 // keys, to each inbox
	kills      = 5  // of the process that receives
	perKill    = perSender / (kills + 1)
)

// message is one signal.
type message struct {
	From string
	Seq  int
}

// inbox is a workflow that receives all that is sent to it, and looks whether there is
// more.
func inbox(l ledger) *durable.Workflow[int, []message] {
	return durable.Define("inbox", func(c *durable.Ctx, _ int) ([]message, error) {
		var all []message
		for i := range perInbox + duplicates {
			signal := "m"
			if i >= perInbox {
				signal = "d"
			}
			v, err := c.Receive[message](fmt.Sprint(i), durable.OnSignal(signal))
			if err != nil {
				return nil, err
			}
			all = append(all, v)
			if !c.Replaying() {
				l.add(Entry{Run: c.ID(), Step: "received"})
			}
		}
		for _, signal := range []string{"m", "d"} {
			v, err := c.Receive[message]("more "+signal, durable.OnSignal(signal), durable.Within(30*time.Millisecond), durable.Else(message{}))
			if err != nil {
				return nil, err
			}
			if v.From != "" {
				all = append(all, v)
			}
		}
		return all, nil
	})
}

// sendAll sends every sender's messages, one after the other, and beside the other
// process the duplicates: of every other key the payloads differ. Before each part of its
// messages a sender waits for the next kill, so that there is something to receive after it.
func sendAll(ctx context.Context, j *job, s durable.Store) error {
	e, err := durable.New(s, durable.Config{})
	if err != nil {
		return err
	}
	killed := func(n int) error {
		if err := awaitFile(j.File + fmt.Sprint(n)); err != nil {
			return err
		}
		return nil
	}
	if err := killed(0); err != nil {
		return err
	}
	var all sync.WaitGroup
	for k := range senders {
		from := fmt.Sprint(j.ID, k)
		all.Go(func() {
			for seq := range perSender {
				if part := seq / perKill; seq%perKill == 0 && part <= kills {
					if err := killed(part); err != nil {
						say("error", err)
						return
					}
				}
				if err := e.Signal(ctx, fmt.Sprint("inbox", seq%inboxes), "m", message{from, seq}); err != nil {
					say("error", err)
				}
				realtime.Pass(time.Duration(rand.IntN(12))*time.Millisecond, "senders come at different moments")
			}
		})
	}
	var kept, refused atomic.Int64
	for k := range inboxes * duplicates {
		all.Go(func() {
			key, m := k/inboxes, message{"same", k / inboxes}
			if key%2 == 1 {
				m.From = j.ID
			}
			realtime.Pass(time.Duration(key)*20*time.Millisecond, "senders come one after the other")
			switch err := e.Signal(ctx, fmt.Sprint("inbox", k%inboxes), "d", m, durable.SignalKey(fmt.Sprint("key", key))); {
			case err == nil:
				kept.Add(1)
				say("kept", k%inboxes, key, m.From)
			case errors.Is(err, durable.ErrIDConflict):
				refused.Add(1)
			default:
				say("error", err)
			}
		})
	}
	all.Wait()
	say("sent", kept.Load(), refused.Load())
	return nil
}

// Row 28: six senders in two processes, and keys that both processes send at once, while
// the process that receives is killed again and again: nothing is lost, nothing comes
// twice, and each sender's messages come in its order.
func TestRow28_ReceiverIsKilled(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l, file := newLedger(t), filepath.Join(t.TempDir(), "go")
		client := engineOn(t, db.openIn(t), durable.Config{})
		var handles []*durable.Run[[]message]
		for i := range inboxes {
			handles = append(handles, start(t, client, inbox(l), 0, durable.ID(fmt.Sprint("inbox", i))))
			// One of each was there before the run began.
			if err := client.Signal(bounded(t), fmt.Sprint("inbox", i), "d", message{"same", 0}, durable.SignalKey("key0")); err != nil {
				t.Fatal(err)
			}
		}
		var ps []*process
		for i := range 2 {
			ps = append(ps, spawn(t, job{Scenario: "sender", DB: db, ID: fmt.Sprint("p", i, "s"), File: file}))
		}
		receivers := make(map[int]*process)
		receive := func() {
			p := spawn(t, job{Scenario: "receiver", DB: db, Ledger: l})
			receivers[p.cmd.Process.Pid] = p
		}
		receive()
		receive()
		tell := func(killed int) {
			if err := os.WriteFile(file+fmt.Sprint(killed), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		tell(0)
		atLastKill := 0
		for k := range kills {
			var victim *process
			await(t, "signals that were sent after the last kill to arrive", func() bool {
				if l.lines(t) <= 2*senders*perKill*k+senders*perKill/2 {
					return false
				}
				all := l.read(t)
				victim = receivers[all[len(all)-1].Pid]
				return victim != nil
			})
			victim.kill()
			delete(receivers, victim.cmd.Process.Pid)
			atLastKill = l.lines(t) // the other process receives while a new one comes
			receive()
			tell(k + 1)
		}
		winners := make(map[string][]string) // of each key
		kept, refused := 0, 0
		for _, p := range ps {
			var k, r int
			if _, err := fmt.Sscan(p.expect("sent"), &k, &r); err != nil {
				t.Fatal(err)
			}
			kept, refused = kept+k, refused+r
			for _, line := range p.seen {
				if f := strings.Fields(line); f[0] == "kept" {
					key := "inbox" + f[1] + "/" + f[2]
					winners[key] = append(winners[key], f[3])
				}
			}
		}
		for i, run := range handles {
			got, err := run.Result(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			next := make(map[string]int)
			times := make(map[message]int)
			for n, m := range got {
				if times[m]++; times[m] > 1 {
					t.Errorf("%s received %v twice", run.ID(), m)
				}
				if n < perInbox && m.Seq < next[m.From] {
					t.Errorf("%s received %v after number %d", run.ID(), m, next[m.From]-1)
				}
				next[m.From] = m.Seq + 1
			}
			for p := range 2 {
				for k := range senders {
					for seq := i; seq < perSender; seq += inboxes {
						if m := (message{fmt.Sprint("p", p, "s", k), seq}); times[m] != 1 {
							t.Errorf("%s received %v %d times", run.ID(), m, times[m])
						}
					}
				}
			}
			for key := range duplicates {
				who := winners[fmt.Sprint("inbox", i, "/", key)]
				if key%2 == 0 && len(who) != 2 || key%2 == 1 && len(who) != 1 {
					t.Errorf("key %d of %s was accepted from %v", key, run.ID(), who)
				} else if times[message{who[0], key}] != 1 {
					t.Errorf("key %d of %s was accepted from %v, and not received: %v", key, run.ID(), who, got[perInbox:])
				}
			}
			if len(got) != perInbox+duplicates {
				t.Errorf("%s received %d of %d", run.ID(), len(got), perInbox+duplicates)
			}
		}
		if after := l.lines(t) - atLastKill; refused != inboxes*duplicates/2 || after == 0 {
			t.Errorf("refused %d, received %d after the last kill", refused, after)
		}
		t.Logf("signals=%d senders=%d kills=%d keys_sent_twice=%d refused=%d lost=0 twice=0 out_of_order=0",
			inboxes*(perInbox+duplicates), 2*senders, kills, kept+refused-inboxes*duplicates, refused)
	})
}
