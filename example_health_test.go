package durable_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/seed8ec063be/durable"
)

// The checks of an engine become the probes of Kubernetes.
func ExampleHealth() {
	store, remove := temporary()
	defer remove()
	probe := func(check func(context.Context) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if err := check(r.Context()); err != nil {
				http.Error(w, "unavailable", http.StatusServiceUnavailable)
			}
		}
	}
	job := durable.Define("job", func(*durable.Ctx, int) (string, error) { return "done", nil })
	health := durable.Health(newEngine(store, job)) // nobody has called its Run
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", probe(health.Ready))
	mux.HandleFunc("GET /livez", probe(health.Live))
	for _, path := range []string{"/readyz", "/livez"} {
		reply := httptest.NewRecorder()
		mux.ServeHTTP(reply, httptest.NewRequest("GET", path, nil))
		fmt.Println(path, reply.Code)
	}
	fmt.Println(health.Ready(context.Background()))
	// Output:
	// /readyz 503
	// /livez 200
	// durable: not ready: Engine.Run was not called, or its context has ended
}
