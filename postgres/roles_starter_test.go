package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/codec"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/schema"
)

// TestAStarterRepeatsAStart: a starter may repeat the start of any run, also of a run that was claimed more than once, has ended, or has
// continued as new. Another start with the same ID is told from it.
func TestAStarterRepeatsAStart(t *testing.T) {
	url := pgtest.URL(t)
	owner, asOwner := granted(t, url, "flows", schema.Owner)
	openAt(t, asOwner, Schema("flows"))
	w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) {
		if n > 100 && n < 103 {
			return 0, c.ContinueAsNew(n + 1)
		}
		return n, c.Sleep("nap", 10*time.Millisecond)
	})
	urls := make(map[schema.Role]string)
	for _, role := range []schema.Role{schema.Worker, schema.Starter} {
		_, urls[role] = granted(t, url, "flows", role)
	}
	as := func(role schema.Role, cfg durable.Config) *durable.Engine {
		t.Helper()
		e, err := durable.New(openAt(t, urls[role], Schema("flows"), OwnedBy(owner)), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	encryption, err := codec.Encrypt(codec.Key{ID: "a", Secret: make([]byte, codec.KeySize)})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]durable.Codec{"plain": nil, "encrypted": encryption} {
		worker := as(schema.Worker, durable.Config{Workflows: []durable.Definition{w}, Codec: c, ParkAfter: time.Millisecond})
		starter := as(schema.Starter, durable.Config{Codec: c})
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- worker.Run(ctx) }()
		for _, n := range []int{1, 101} {
			id := durable.ID(fmt.Sprint(what, n))
			run, err := w.Start(t.Context(), starter, n, id)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := run.Result(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Start(t.Context(), starter, n, id); err != nil {
				t.Errorf("%s: a repeated start with %d: %v", what, n, err)
			}
			for _, other := range []int{55, 103} { // 103 is the input of the last generation
				if _, err := w.Start(t.Context(), starter, other, id); !errors.Is(err, durable.ErrIDConflict) {
					t.Errorf("%s: a start with %d in place of %d: %v", what, other, n, err)
				}
			}
		}
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	}
}
