package ui_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
	"github.com/seed8ec063be/durable/ui"
)

// The dashboard is mounted on the server of a program, behind its own login.
func ExampleHandler() {
	dir, _ := os.MkdirTemp("", "durable")
	defer os.RemoveAll(dir)
	store, err := sqlite.Open(filepath.Join(dir, "shop.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	engine, err := durable.New(store, durable.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	authorize := func(r *http.Request, a ui.Action) (actor string, err error) {
		user, _, ok := r.BasicAuth() // stands for the login of the program
		if !ok || a.Verb == "delete" {
			return "", errors.New("ask the operators")
		}
		return user, nil
	}
	mux := http.NewServeMux()
	mux.Handle("/durable/", ui.Handler(engine, ui.Prefix("/durable"), ui.Authorize(authorize)))

	request := httptest.NewRequest("GET", "/durable/api/v1/runs", nil)
	for _, user := range []string{"", "ann"} {
		if user != "" {
			request.SetBasicAuth(user, "secret")
		}
		reply := httptest.NewRecorder()
		mux.ServeHTTP(reply, request)
		fmt.Println(reply.Code)
	}
	// Output:
	// 403
	// 200
}
