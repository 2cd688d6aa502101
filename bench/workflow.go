package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"sync/atomic"

	"github.com/seed8ec063be/durable"
)

// receipt is the result of a step.
type receipt struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
}

// smallest is the size in bytes of JSON of the shortest receipt that can contain every number.
const smallest = 40

// letters contains characters that need no escape in JSON.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// newReceipt returns a receipt of the given size in bytes of JSON. Its bytes are always the same,
// and compress badly, because PostgreSQL compresses large values.
func newReceipt(bytes int) receipt {
	r := receipt{Number: 1_000_000}
	chosen := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, bytes-len(r.encode()))
	for i := range text {
		text[i] = letters[chosen.IntN(len(letters))]
	}
	r.Text = string(text)
	return r
}

func (r receipt) encode() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic("bench: " + err.Error()) // a number and a text can always be encoded
	}
	return text
}

// workflowName is the name of the workflow of the default mode.
const workflowName = "bench"

// tenSteps is the workflow of the default mode, with ten steps unless a flag sets another number.
// done counts the steps that this process has executed.
type tenSteps struct {
	*durable.Workflow[int, int]
	done atomic.Int64
}

// define defines the workflow, whose steps do nothing and are executed one after the other.
func define(steps, payload int) *tenSteps {
	names, out := stepNames(steps), newReceipt(payload)
	w := new(tenSteps)
	w.Workflow = durable.Define(workflowName, func(c *durable.Ctx, in int) (int, error) {
		for _, name := range names {
			if _, err := c.Step(name, func(context.Context) (receipt, error) { return out, nil }); err != nil {
				return 0, err
			}
			w.done.Add(1) // the step is committed
		}
		return in, nil
	})
	return w
}

func stepNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "step-" + strconv.Itoa(i)
	}
	return names
}
