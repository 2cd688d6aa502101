package faults

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/postgres"
)

// lateCommit is what a proxy does to one COMMIT.
type lateCommit struct {
	fate string        // of the COMMIT: see below
	sent chan struct{} // closed when the COMMIT, or its reply, is held back
	free chan struct{} // closed when it goes on to its fate
}

const (
	replyLate  = "the reply comes late"
	replyLost  = "the reply is lost"
	commitLost = "the COMMIT is lost"
)

// lateLimit is the time of the step, which must suffice to get to COMMIT. Where it does not, the test is
// repeated with twice the time.
const lateLimit = 2 * time.Second

// delay holds back the next COMMIT of a connection that has carried the needle, or its reply.
func (p *proxy) delay(needle, fate string) *lateCommit {
	l := &lateCommit{fate, make(chan struct{}), make(chan struct{})}
	p.watch(needle)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = l
	return l
}

// hold waits until the COMMIT goes on to its fate, and reports whether the connection goes on with it.
func (l *lateCommit) hold(p *proxy) bool {
	close(l.sent)
	select {
	case <-l.free:
		return l.fate == replyLate
	case <-p.ended:
		return false
	}
}

// delayCommit looks for the COMMIT in what the client sent. It reports false if the connection is to end.
func (k *link) delayCommit(chunk []byte) bool {
	k.p.mu.Lock()
	l := k.p.late
	if l == nil || !k.marked || !bytes.Contains(bytes.ToLower(chunk), []byte("commit\x00")) {
		k.p.mu.Unlock()
		return true
	}
	k.p.late = nil
	k.p.mu.Unlock()
	if l.fate == commitLost {
		return l.hold(k.p)
	}
	k.late.Store(l)
	return true
}

// delayReply holds back the reply to the COMMIT. It reports false if the connection is to end.
func (k *link) delayReply() bool {
	l := k.late.Swap(nil)
	return l == nil || l.hold(k.p)
}

// Row 45: the reply to the COMMIT of a Tx step comes late, or is lost, and the step's context ends meanwhile. What the
// workflow function sees of the step is what the database recorded, so that its compensation is registered exactly
// if there is something to undo.
func TestRow45_ContextEndsBeforeTheReplyToCommit(t *testing.T) {
	for _, end := range []string{"cancel", "run timeout", "attempt timeout and cancel", "attempt timeout", "total timeout", "choice"} {
		for _, fate := range []string{replyLate, replyLost, commitLost} {
			t.Run(end+", "+fate, func(t *testing.T) {
				t.Parallel()
				for limit := lateLimit; !lateReply(t, end, fate, limit); limit *= 2 {
					if limit > patience/4 {
						t.Fatal("the proxy has met no COMMIT")
					}
				}
			})
		}
	}
}

// lateReply reports false if the step's time was over before the proxy met the COMMIT.
func lateReply(t *testing.T, end, fate string, limit time.Duration) bool {
	db := fresh(t, "postgres")
	p := newProxy(t, db.Where)
	l := p.delay("stock", fate)
	s := database{Kind: db.Kind, Where: p.url(t, db.Where), Schema: db.Schema}.openIn(t)
	outside(t, db, "", "CREATE TABLE stock (n int)")
	var saw error
	undone := false
	win := make(chan struct{})
	reserve := func(c *durable.Ctx) (string, error) {
		var opts []durable.StepOption
		switch end {
		case "attempt timeout", "attempt timeout and cancel":
			opts = append(opts, durable.AttemptTimeout(limit))
		case "total timeout":
			opts = append(opts, durable.TotalTimeout(limit))
		}
		_, err := postgres.Tx(c, "reserve", func(ctx context.Context, tx pgx.Tx) (string, error) {
			_, err := tx.Exec(ctx, "INSERT INTO "+pgx.Identifier{db.Schema, "stock"}.Sanitize()+" VALUES (1)")
			return "reserved", err
		}, opts...)
		if saw = err; err != nil {
			return "", err
		}
		return "", c.Compensate("release", func(context.Context) error { undone = true; return nil })
	}
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		if end != "choice" {
			if _, err := reserve(c); err != nil {
				return "", err
			}
			return "", errors.New("undo all")
		}
		a := c.Go("a", reserve)
		b := c.Go("b", func(c *durable.Ctx) (string, error) {
			return c.Step("win", func(context.Context) (string, error) { <-win; return "b", nil })
		})
		if _, _, err := durable.Any(c, "first", durable.CancelLosers, a, b); err != nil {
			return "", err
		}
		_, _ = a.Wait()
		return "", errors.New("undo all")
	})
	e := engineOn(t, s, durable.Config{Grace: -1}, w)
	defer runEngine(t, e)()
	var opts []durable.StartOption
	if end == "run timeout" {
		opts = append(opts, durable.Timeout(limit))
	}
	run := start(t, e, w, 1, append(opts, durable.ID("r"))...)
	await(t, "a COMMIT, or the end of the run", func() bool {
		return closed(l.sent) || end != "cancel" && end != "choice" && !info(t, e, "r").EndedAt.IsZero()
	})
	if !closed(l.sent) {
		return false
	}
	free := time.AfterFunc(time.Minute, func() { close(l.free) })
	if fate == commitLost {
		free.Reset(limit + 500*time.Millisecond) // before that the transaction locks the run, and a cancel waits
	}
	switch end {
	case "choice":
		close(win)
	case "cancel", "attempt timeout and cancel":
		if _, err := e.Cancel(bounded(t), "r"); err != nil {
			t.Error(err)
		}
	}
	if fate != commitLost {
		free.Reset(limit + 500*time.Millisecond)
	}
	_, err := run.Result(bounded(t))
	row := "reserve"
	if end == "choice" {
		row = "a/reserve"
	}
	recorded := history(t, e, "r")[row].Status == durable.CheckpointCompleted
	rows := count(t, db, "stock")
	t.Logf("result=%v saw=%v recorded=%t rows=%d compensated=%t", err, saw, recorded, rows, undone)
	if recorded != (rows == 1) || recorded != (saw == nil) || recorded != undone || rows > 1 {
		t.Errorf("the database says recorded=%t with %d rows, the function saw %v, compensated=%t", recorded, rows, saw, undone)
	}
	if fate != commitLost && !recorded {
		t.Error("the step was committed, and is not recorded")
	}
	return true
}
