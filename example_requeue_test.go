package durable_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/seed8ec063be/durable"
)

func ExampleEngine_MoveToQueue() {
	store, remove := temporary()
	defer remove()
	ctx := context.Background()
	engine, err := durable.New(store, durable.Config{})
	if err != nil {
		log.Fatal(err)
	}
	send := durable.Define("send", func(_ *durable.Ctx, to string) (string, error) { return "sent to " + to, nil })
	run, err := send.Start(ctx, engine, "ada", durable.ID("mail-7"), durable.InQueue("slow"), durable.Delay(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	if err := engine.MoveToQueue(ctx, run.ID(), "fast", durable.Actor("ann"), durable.Reason("the customer asks")); err != nil {
		log.Fatal(err)
	}
	info, err := engine.Get(ctx, run.ID())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.ID, "waits in queue", info.Queue)
	// Output:
	// mail-7 waits in queue fast
}

func ExampleEngine_SetPriority() {
	store, remove := temporary()
	defer remove()
	ctx := context.Background()
	engine, err := durable.New(store, durable.Config{})
	if err != nil {
		log.Fatal(err)
	}
	send := durable.Define("send", func(_ *durable.Ctx, to string) (string, error) { return "sent to " + to, nil })
	run, err := send.Start(ctx, engine, "ada", durable.ID("mail-8"))
	if err != nil {
		log.Fatal(err)
	}
	if err := engine.SetPriority(ctx, run.ID(), durable.HighestPriority, durable.Actor("ann")); err != nil {
		log.Fatal(err)
	}
	events, err := engine.Events(ctx, durable.Page{})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range events {
		fmt.Println(e.ID, e.Type, "from", e.Old, "to", e.New, "by", e.Actor)
	}
	// Output:
	// mail-8 priority from 0 to 2 by ann
}
