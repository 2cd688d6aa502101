package durable_test

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"fmt"
	"log"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/codec"
)

// Payloads are compressed and encrypted before they reach the database. What is exported stays encrypted, and an engine with the key
// decodes it.
func ExampleEngine_DecodeExport() {
	greet := durable.Define("greet", func(c *durable.Ctx, name string) (string, error) { return "Hello, " + name, nil })

	encryption, err := codec.Encrypt(codec.Key{ID: "2026-11", Secret: bytes.Repeat([]byte{7}, codec.KeySize)}) // 32 random bytes from your key store
	if err != nil {
		log.Fatal(err)
	}
	store, remove := temporary()
	defer remove()
	engine, err := durable.New(store, durable.Config{
		Workflows: []durable.Definition{greet}, Codec: codec.Chain(codec.Compress(), encryption),
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	fmt.Println(greet.Call(ctx, engine, "Ada", durable.ID("ada")))

	file, err := engine.Export(ctx, "ada")
	if err != nil {
		log.Fatal(err)
	}
	var export durable.Exported
	if err := json.Unmarshal(file, &export); err != nil {
		log.Fatal(err)
	}
	fmt.Println(bytes.Contains(file, []byte("Ada")))
	fmt.Println(engine.DecodeExport(&export), string(export.Run.Output))
	// Output:
	// Hello, Ada <nil>
	// false
	// <nil> "Hello, Ada"
}

// durabletest.Replay needs an export in clear.
func ExampleDecodePayloads() {
	greet := durable.Define("greet", func(c *durable.Ctx, name string) (string, error) { return "Hello, " + name, nil })
	store, remove := temporary()
	defer remove()
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{greet}, Codec: codec.Compress()})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	fmt.Println(greet.Call(ctx, engine, "Ada", durable.ID("ada")))
	file, err := engine.Export(ctx, "ada", durable.DecodePayloads())
	fmt.Println(bytes.Contains(file, []byte(`"input": "Ada"`)), err)
	// Output:
	// Hello, Ada <nil>
	// true <nil>
}
