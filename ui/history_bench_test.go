package ui_test

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
	"github.com/seed8ec063be/durable/ui"
)

// BenchmarkLongRun loads the page of a run whose Map has 10,000 items.
func BenchmarkLongRun(b *testing.B) {
	file, err := sqlite.Open(filepath.Join(b.TempDir(), "ui.db"))
	if err != nil {
		b.Fatal(err)
	}
	server, err := postgres.Open(context.Background(), pgtest.ServerURL(b), postgres.Schema(pgtest.LendSchema(b, "migration", "secret")))
	if err != nil {
		b.Fatal(err)
	}
	for name, s := range map[string]durable.Store{"sqlite": file, "postgres": server} {
		b.Run(name, func(b *testing.B) {
			e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{large}})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := large.Call(context.Background(), e, [2]int{0, 10_000}, durable.ID("long")); err != nil {
				b.Fatal(err)
			}
			h := ui.Handler(e)
			for b.Loop() {
				if got := send(h, runPage("long")+"&from=5000", nil); got.Code != http.StatusOK {
					b.Fatal(got.Body)
				}
			}
		})
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
