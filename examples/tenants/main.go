// Command tenants is a service with a schema for each tenant, on one PostgreSQL. One process executes the runs of all tenants: their
// stores share the connections, the session that listens, and the look at other workers.
//
//	go run ./examples/tenants -tenants 20
//	go run ./examples/tenants -url postgres://db.example.org/shop
//
// On a Citus with citus.enable_schema_based_sharding, the tenants' schemas lie on several nodes. Then only the URL is another one: each
// store finds the node of its schema.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
)

var invoice = durable.Define("invoice", func(c *durable.Ctx, customer string) (string, error) {
	number, err := c.Step("number", func(context.Context) (int, error) { return len(customer), nil })
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("invoice %d for %s", number, customer), c.Do("send", func(context.Context) error { return nil })
})

func main() {
	url := flag.String("url", "", "the database; empty: a temporary server")
	tenants := flag.Int("tenants", 10, "how many schemas")
	idle := flag.Duration("idle", 0, "then measure for this time what the idle service costs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *url, *tenants, *idle); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string, tenants int, idle time.Duration) (err error) {
	if url == "" {
		server, err := pgtest.Start(ctx, pgtest.Options{})
		if err != nil {
			return err
		}
		defer server.Close()
		url = server.URL()
	}
	service, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer stop()
	shared, err := postgres.Open(ctx, url) // the schema durable, for what is nobody's in particular
	if err != nil {
		return err
	}
	defer shared.Close()
	engines := make(map[string]*durable.Engine)
	for i := range tenants {
		tenant := fmt.Sprintf("tenant_%d", i)
		store, err := shared.OpenSchema(ctx, tenant)
		if err != nil {
			return err
		}
		engine, err := durable.New(store, durable.Config{Name: tenant, Workflows: []durable.Definition{invoice}})
		if err != nil {
			return errors.Join(err, store.Close())
		}
		engines[tenant] = engine
		workers.Go(func() {
			if err := errors.Join(engine.Run(service), store.Close()); err != nil {
				log.Print(err)
			}
		})
	}
	for tenant, engine := range engines {
		run, err := invoice.Start(ctx, engine, "customer of "+tenant, durable.ID("invoice-1")) // each tenant has IDs of its own
		if err != nil {
			return err
		}
		text, err := run.Result(ctx)
		if err != nil {
			return err
		}
		fmt.Println(tenant+":", text)
	}
	return measure(ctx, url, idle)
}

// measure prints what the server counts while the service has nothing to do.
func measure(ctx context.Context, url string, window time.Duration) error {
	if window == 0 {
		return nil
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the program ends
	var before, after, conns int
	const counts = `SELECT d.xact_commit + d.xact_rollback, (SELECT count(*) - 1 FROM pg_stat_activity AS a WHERE a.datname = d.datname)
		FROM pg_stat_database AS d WHERE d.datname = current_database()`
	for _, count := range []*int{&before, &after} {
		select {
		case <-time.After(window): // the first time until the connections are closed that only the beginning needs
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := conn.QueryRow(ctx, counts).Scan(count, &conns); err != nil {
			return err
		}
	}
	fmt.Printf("idle: %.1f transactions per second, %d connections\n", float64(after-before)/window.Seconds(), conns)
	return nil
}
