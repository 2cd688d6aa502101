package durable_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

type res struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	OK   bool   `json:"ok"`
}

func TestQuickBench(t *testing.T) {
	if os.Getenv("QB") == "" {
		t.SkipNow()
	}
	if os.Getenv("QB") == "pg" {
		srv, err := pgtest.Start(pgtest.Options{Settings: []string{"shared_buffers='1GB'", "max_wal_size='8GB'"}})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		s, err := postgres.Open(t.Context(), srv.Socket("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		quick(t, s)
		return
	}
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	quick(t, s)
}

func quick(t *testing.T, s durable.Store) {
	wf := durable.Define("hello", func(c *durable.Ctx, in int) (res, error) {
		var r res
		for i := range 10 {
			var err error
			r, err = c.Step(names[i], func(ctx context.Context) (res, error) {
				return res{in, "the quick brown fox jumps", true}, nil
			})
			if err != nil {
				return r, err
			}
		}
		return r, nil
	})
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{wf}, Concurrency: 2000})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()
	for _, c := range []int{1, 16, 100, 1000} {
		var n int
		var mu sync.Mutex
		var wg sync.WaitGroup
		end := time.Now().Add(3 * time.Second)
		began := time.Now()
		for range c {
			wg.Go(func() {
				for time.Now().Before(end) {
					r, err := wf.Start(ctx, e, 3)
					if err != nil {
						t.Error(err)
						return
					}
					if _, err := r.Result(ctx); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					n++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		fmt.Printf("c=%d wf/s=%.0f\n", c, float64(n)/time.Since(began).Seconds())
	}
	cancel()
	<-done
}

var names = []string{"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"}
