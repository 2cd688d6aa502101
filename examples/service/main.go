package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

var checkout = durable.Define("checkout", func(c *durable.Ctx, cents int) (string, error) {
	payment, err := c.Step("charge", func(context.Context) (string, error) { log.Println("charging"); return fmt.Sprint("paid ", cents), nil })
	if err != nil {
		return "", err
	}
	return payment, c.Sleep("cool off", 3*time.Second)
})

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	store, err := sqlite.Open("shop.db")
	if err != nil {
		log.Fatal(err)
	}
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{checkout}})
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		receipt, err := checkout.Call(r.Context(), engine, 1999, durable.ID(r.PathValue("id")))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, receipt)
	})
	go func() { log.Println(http.ListenAndServe("localhost:8080", nil)); stop() }()
	log.Println("stopped:", engine.Run(ctx)) // Run returns when ctx ends and the running steps have finished
}
