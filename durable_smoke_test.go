package durable_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

func TestSmoke(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wf := durable.Define("hello", func(c *durable.Ctx, in string) (string, error) {
		a, err := c.Step("a", func(ctx context.Context) (int, error) { return 41, nil })
		if err != nil {
			return "", err
		}
		b, err := c.Step("b", func(ctx context.Context) (string, error) { return durable.IdempotencyKey(ctx), nil })
		if err != nil {
			return "", err
		}
		if _, err := c.Step("a", func(ctx context.Context) (int, error) { return 41, nil }); err != nil {
			fmt.Println(err)
		}
		return fmt.Sprint(in, a, b), nil
	})
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{wf}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := wf.Call(t.Context(), e, "x", durable.ID("o1"))
	fmt.Println(out, err)
	out, err = wf.Call(t.Context(), e, "x", durable.ID("o1"))
	fmt.Println(out, err)
	_, err = wf.Call(t.Context(), e, "y", durable.ID("o1"))
	fmt.Println(err)
	h, err := e.History(t.Context(), "o1")
	fmt.Printf("%+v %v\n", h, err)
}
