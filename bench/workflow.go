package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"sync/atomic"

	"github.com/seed8ec063be/durable"
)

// receipt is what a step returns.
type receipt struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
}

// smallest is the shortest receipt that has room for any number, in bytes of JSON.
const smallest = 40

// letters need no escape in JSON.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// newReceipt is one of so many bytes of JSON. They are always the same, and cannot be
// compressed by much: PostgreSQL would.
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
		panic("bench: " + err.Error()) // a number and a text
	}
	return text
}

// workflowName is the workflow's of the default mode.
const workflowName = "bench"

// tenSteps is the workflow, unless there are to be more steps or fewer, and how many of its steps
// were executed here.
type tenSteps struct {
	*durable.Workflow[int, int]
	done atomic.Int64
}

// define makes the workflow: steps that do nothing, one after the other.
func define(steps, payload int) *tenSteps {
	names, out := stepNames(steps), newReceipt(payload)
	w := new(tenSteps)
	w.Workflow = durable.Define(workflowName, func(c *durable.Ctx, in int) (int, error) {
		for _, name := range names {
			if _, err := c.Step(name, func(context.Context) (receipt, error) { return out, nil }); err != nil {
				return 0, err
			}
			w.done.Add(1) // it is committed
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
