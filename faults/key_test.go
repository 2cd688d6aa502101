package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/codec"
)

// codecWith returns a codec with the keys of the given IDs, which are separated by commas. The first one encrypts.
func codecWith(ids string) (durable.Codec, error) {
	var keys []codec.Key
	for id := range strings.SplitSeq(ids, ",") {
		keys = append(keys, codec.Key{ID: id, Secret: bytes.Repeat([]byte(id[:1]), codec.KeySize)})
	}
	return codec.Encrypt(keys...)
}

// secret is a workflow whose middle step lasts until a file exists.
func secret(l ledger, file string) *durable.Workflow[string, string] {
	return durable.Define("secret", func(c *durable.Ctx, in string) (string, error) {
		for _, name := range []string{"before", "during", "after"} {
			out, err := c.Step(name, func(ctx context.Context) (string, error) {
				l.did(ctx, c.ID(), name)
				say(name)
				if name == "during" {
					if err := awaitFile(file); err != nil {
						return "", err
					}
				}
				return in + " " + name, nil
			})
			if err != nil {
				return "", err
			}
			in = out
		}
		return in, nil
	})
}

func init() {
	// secret executes runs with a codec that has the keys of Point.
	scenarios["secret"] = func(ctx context.Context, j *job, s durable.Store) error {
		keys, err := codecWith(j.Point)
		if err != nil {
			return err
		}
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{secret(j.Ledger, j.File)}, Codec: keys, Lease: j.Lease, Poll: 50 * time.Millisecond})
		if err != nil {
			return err
		}
		say("working")
		return e.Run(ctx)
	}
}

// Row 55: the only process that has the key of a run's payloads is killed. Another one, which lacks the key, takes the run over and
// gives it back: it does not fail, nothing of it is executed or compensated, and no crash is counted for that. A process that has the
// key continues it.
func TestRow55_KeyGone(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l, file := newLedger(t), filepath.Join(t.TempDir(), "go")
		worker := func(keys string) *process {
			p := spawn(t, job{Scenario: "secret", DB: db, Ledger: l, File: file, Point: keys, Lease: 4 * time.Second})
			p.expect("working")
			return p
		}
		keys, err := codecWith("new,old")
		must(t, "codec", err)
		client := engineOn(t, db.openIn(t), durable.Config{Codec: keys})
		w := secret(l, file)
		first := worker("new,old")
		start(t, client, w, "text", durable.ID("one"))
		first.expect("during")
		without := worker("old")
		first.kill()
		await(t, "the run to be given back", func() bool {
			i := info(t, client, "one")
			return i.Status == durable.StatusPending && strings.Contains(i.Reason, `"new"`)
		})
		if i := info(t, client, "one"); i.Crashes > 1 || !i.WakeAt.After(i.CreatedAt) {
			t.Errorf("%d crashes are counted: %+v", i.Crashes, i)
		}
		blind, err := codecWith("old")
		must(t, "codec", err)
		reader := engineOn(t, db.openIn(t), durable.Config{Codec: blind})
		if _, err := reader.History(bounded(t), "one"); err != nil && !errors.Is(err, durable.ErrUnreadable) {
			t.Errorf("the history without the key: %v", err)
		}
		without.signal(syscall.SIGTERM)
		without.mustEndWell()
		must(t, "release", os.WriteFile(file, nil, 0o600))
		last := worker("new,old")
		if out, err := result(t, client, w, "one"); err != nil || out != "text before during after" {
			t.Errorf("%q, %v", out, err)
		}
		last.signal(syscall.SIGTERM)
		last.mustEndWell()
		for step, want := range map[string]int{"before": 1, "during": 2, "after": 1} {
			if got := len(l.of(t, "one", step)); got != want {
				t.Errorf("%s was called %d times, want %d", step, got, want)
			}
		}
		if i := info(t, client, "one"); fmt.Sprint(i.Status) != "completed" {
			t.Errorf("the run is %s", i.Status)
		}
	})
}
