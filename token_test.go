package durable_test

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
)

// Nobody can derive a token from the idempotency key of a step, from another token, or with another database. A token is the same
// in every execution and process.
func TestTokensCannotBeForged(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		tokens, keys := make(chan string, 10), make(chan string, 10)
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			approval := c.Callback[string]("approval")
			tokens <- approval.Token() // once in each execution
			err := c.Do("mail", func(ctx context.Context) error { keys <- durable.IdempotencyKey(ctx); return nil })
			if err != nil {
				return "", err
			}
			if _, err := c.Receive[string]("first"); err != nil {
				return "", err
			}
			return approval.Wait()
		})
		e, client := engineOn(t, s, w), engineOn(t, s)
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("order-42"))
		if err != nil {
			t.Fatal(err)
		}
		token, key := <-tokens, <-keys
		info, err := client.Get(within(t), "order-42")
		if err != nil {
			t.Fatal(err)
		}
		id, _, _ := strings.Cut(key, ":")
		if id != info.RunID {
			t.Fatalf("the idempotency key %q does not begin with the run's UUID %q any more", key, info.RunID)
		}
		forge := func(tail string) string {
			return "durable-" + base64.RawURLEncoding.EncodeToString(append(uuidBytes(t, id), "\x1fapproval"+tail...))
		}
		forged := []string{"", "durable-", "order-42", token + "A", token[:len(token)-1], token + "\n", forge(""), forge(strings.Repeat("\x00", 16)), forge(strings.Repeat("\x00", 32))}
		plain, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "durable-"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range plain {
			altered := slices.Clone(plain)
			altered[i] ^= 1
			forged = append(forged, "durable-"+base64.RawURLEncoding.EncodeToString(altered))
		}
		for _, text := range forged {
			if err := client.Complete(within(t), text, "forged"); !errors.Is(err, durable.ErrInvalidToken) {
				t.Errorf("the text %q: %v", text, err)
			}
		}
		awaitStatus(t, e, run.ID(), durable.StatusWaiting)
		signal(t, client, run.ID(), "first", "on")
		if again := <-tokens; again != token {
			t.Errorf("the token is %q in one execution and %q in another", token, again)
		}
		if err := client.Complete(within(t), token, "yes"); err != nil {
			t.Fatal(err)
		}
		if got, err := run.Result(within(t)); got != "yes" || err != nil {
			t.Errorf("the run returned %q, %v", got, err)
		}
	})
}

// Each generation has callbacks of its own: the token of an earlier generation does not complete a callback of the same name, and the same
// value completes each of them. A retry keeps the token that was given out.
func TestEachGenerationHasItsOwnCallbacks(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var bank fixable
		tokens := make(chan string, 10)
		w := durable.Define("approvals", func(c *durable.Ctx, answers []string) ([]string, error) {
			approval := c.Callback[string]("approval")
			if err := c.Do("ask", func(context.Context) error { tokens <- approval.Token(); return nil }); err != nil {
				return nil, err
			}
			var opts []durable.ReceiveOption
			switch len(answers) {
			case 0: // the callback times out
				opts = []durable.ReceiveOption{durable.Within(0), durable.Else("nobody")}
			case 2:
				if err := c.Do("book", func(context.Context) error { return bank.err() }); err != nil {
					return nil, err
				}
			}
			answer, err := approval.Wait(opts...)
			if err != nil {
				return nil, err
			}
			if answers = append(answers, answer); len(answers) < 3 {
				return nil, c.ContinueAsNew(answers)
			}
			return answers, nil
		})
		e := engineOn(t, s, w)
		running(t, e)
		run := orFail(w.Start(ctx, e, nil, durable.ID("approvals")))(t)
		complete := func(token, answer string) {
			t.Helper()
			if err := e.Complete(ctx, token, answer); err != nil {
				t.Error(err)
			}
		}
		first, second := <-tokens, <-tokens
		complete(first, "late")
		complete(second, "yes")
		third := <-tokens
		if err := e.Complete(ctx, second, "no"); !errors.Is(err, durable.ErrIDConflict) || !strings.Contains(err.Error(), `"approval#2"`) {
			t.Errorf("another answer to the second generation: %v", err)
		}
		awaitStatus(t, e, "approvals", durable.StatusFailed)
		bank.fixed.Store(true)
		orFail(e.Retry(ctx, "approvals"))(t)
		awaitStatus(t, e, "approvals", durable.StatusWaiting)
		if left := orFail(e.Get(ctx, "approvals"))(t).Unreceived; len(left) != 1 || left["approval"] != 1 {
			t.Errorf("the unreceived signals are %v", left)
		}
		complete(third, "yes")
		if got, err := run.Result(ctx); err != nil || !slices.Equal(got, []string{"nobody", "yes", "yes"}) {
			t.Errorf("the run ended with %v, %v", got, err)
		}
	})
}

// uuidBytes returns the sixteen bytes of a UUID.
func uuidBytes(t *testing.T, text string) []byte {
	t.Helper()
	id, err := uuid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return id[:]
}
