package main

import (
	"context"
	"encoding/json/v2"
	"errors"
	"log"
	"net/http"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// handler returns the HTTP API of the shop. It needs no worker in its own process.
func handler(engine *durable.Engine) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		var o Order
		if err := json.UnmarshalRead(r.Body, &o); err != nil || o.Customer == "" {
			http.Error(w, "send an order with a customer", http.StatusBadRequest)
			return
		}
		// The ID comes from the client, so a request that the client sends again starts no second checkout.
		_, err := checkout.Start(r.Context(), engine, o, durable.ID(r.PathValue("id")), durable.GroupKey(o.Customer))
		reply(w, http.StatusAccepted, "accepted", err)
	})
	mux.HandleFunc("POST /orders/{id}/approval", func(w http.ResponseWriter, r *http.Request) {
		err := engine.Signal(r.Context(), r.PathValue("id"), "approval", true, durable.SignalKey("approval"))
		reply(w, http.StatusAccepted, "approved", err)
	})
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		run, err := checkout.Handle(r.Context(), engine, r.PathValue("id"))
		if err != nil {
			reply(w, 0, "", err)
			return
		}
		receipt, ended, err := run.TryResult(r.Context())
		if !ended && err == nil {
			receipt = "in progress"
		}
		reply(w, http.StatusOK, receipt, err)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusOK, "ready", durable.Health(engine).Ready(r.Context()))
	})
	mux.Handle("/durable/", ui.Handler(engine, ui.Prefix("/durable"))) // read-only without ui.Authorize
	return mux
}

// reply writes the text, or the status that fits the error.
func reply(w http.ResponseWriter, status int, text string, err error) {
	var failed *durable.RunError
	switch {
	case err == nil:
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text + "\n"))
	case errors.Is(err, durable.ErrNotFound):
		http.Error(w, "there is no such order", http.StatusNotFound)
	case errors.Is(err, durable.ErrIDConflict):
		http.Error(w, "the order exists with other contents", http.StatusConflict)
	case errors.As(err, &failed):
		http.Error(w, "the order failed", http.StatusUnprocessableEntity)
	default:
		log.Print(err)
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	}
}

// serve executes workflows and serves HTTP until ctx ends.
func serve(ctx context.Context, engine *durable.Engine, address string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := &http.Server{Addr: address, Handler: handler(engine)}
	listening := make(chan error, 1)
	go func() {
		listening <- server.ListenAndServe()
		stop()
	}()
	err := engine.Run(ctx) // when ctx ends, Run lets the running steps finish
	err = errors.Join(err, server.Shutdown(context.WithoutCancel(ctx)))
	if failed := <-listening; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	return err
}
