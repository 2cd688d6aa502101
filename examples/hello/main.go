package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

var count = durable.Define("count", func(c *durable.Ctx, to int) (text string, err error) {
	for i := 1; i <= to && err == nil; i++ {
		err = c.Do(fmt.Sprint("number ", i), func(context.Context) error { <-time.After(time.Second); fmt.Println(i); return nil })
	}
	return fmt.Sprint("counted to ", to), err
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
	fmt.Println(count.Call(context.Background(), engine, 5, durable.ID("count-1")))
}
