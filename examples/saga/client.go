package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/seed8ec063be/durable"
)

const (
	keyHeader    = "Idempotency-Key"
	workerHeader = "Saga-Worker" // the name of the worker that sends the request, so that the parent knows which worker to kill
)

// request is the body of every request to the shop, and of a question to a human.
type request struct {
	Order string
	Label string // of a parcel
	Token string // of a question
}

// client sends a worker's requests to the shop.
type client struct{ url, worker string }

// order sends one request about an order, with the step's idempotency key, and returns the number
// of the receipt.
func (c client) order(ctx context.Context, path, order, label string) (string, error) {
	reply, err := c.post(ctx, path, request{Order: order, Label: label})
	return string(reply), err
}

// ask sends a question about an order to a human, who decides some time later with the token.
func (c client) ask(ctx context.Context, order, token string) error {
	_, err := c.post(ctx, pathAsk, request{Order: order, Token: token})
	return err
}

func (c client) post(ctx context.Context, path string, body any) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	r.Header.Set(keyHeader, durable.IdempotencyKey(ctx))
	r.Header.Set(workerHeader, c.worker)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	reply, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode >= 500:
		return nil, fmt.Errorf("the shop replied %s: %s", response.Status, reply)
	case response.StatusCode >= 300: // a repeated request would get the same response
		return nil, durable.Permanent(&refusal{response.StatusCode, string(reply)})
	}
	return reply, nil
}

// refusal is the error of a request that the other side understood and rejected.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return fmt.Sprintf("refused (%d): %s", e.status, e.text) }
