package main

import (
	"context"
	"fmt"
	"log"
	"os/exec"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

var count = durable.Define("count", func(c *durable.Ctx, limit int) (text string, err error) {
	for i := 1; i <= limit && err == nil; i++ {
		err = c.Do(fmt.Sprint("number ", i), func(ctx context.Context) error { fmt.Println(i); return exec.CommandContext(ctx, "sleep", "1").Run() })
	}
	return fmt.Sprint("counted to ", limit), err
})

func main() {
	store, err := sqlite.Open("count.db")
	if err != nil {
		log.Fatal(err)
	}
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{count}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(count.Call(context.Background(), engine, 10, durable.ID("count-1")))
}
