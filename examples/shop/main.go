// Command shop is a small service: an HTTP API with a worker, and the command durable for its operators, in one program.
//
//	shop                        serve HTTP on localhost:8080 and execute orders
//	shop list --status failed   any command of durable, with the workflows of the shop
package main

import (
	"cmp"
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
	"github.com/seed8ec063be/durable/sqlite"
)

func main() {
	store, err := sqlite.Open(cmp.Or(os.Getenv("SHOP_DB"), "shop.db"))
	if err != nil {
		log.Fatal(err)
	}
	engine, err := durable.New(store, config())
	if err != nil {
		log.Fatal(err)
	}
	if len(os.Args) > 1 {
		os.Exit(durablecli.Execute(context.Background(), durablecli.Command(engine)))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	log.Println("stopped:", serve(ctx, engine, "localhost:8080"))
}
