package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
)

// templates are the databases that CopyURL copies, by name. Main drops them.
var templates struct {
	mu   sync.Mutex
	made map[string]string // the databases
}

// CopyURL creates a database for the test, like URL, but with content. The first call with a name creates a template and
// calls fill with the template's URL. Each call returns the URL of a copy of the template. Copying takes less time
// than applying the migrations to an empty database. When fill returns, its connections must be closed.
func CopyURL(t testing.TB, name string, fill func(ctx context.Context, url string) error) string {
	t.Helper()
	ServerURL(t)
	template, err := templateOf(name, fill)
	if err != nil {
		t.Fatalf("pgtest: create the template %q: %v", name, err)
	}
	return createDatabase(t, template)
}

// templateOf returns the database with the content of fill.
func templateOf(name string, fill func(ctx context.Context, url string) error) (template string, err error) {
	templates.mu.Lock()
	defer templates.mu.Unlock()
	if template, ok := templates.made[name]; ok {
		return template, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout) // not the context of a test, because other tests wait for the template too
	defer cancel()
	template = "pgtest_template_" + strings.ToLower(rand.Text())
	if err := execute(ctx, shared.url, "CREATE DATABASE "+template+" TEMPLATE "+templateDatabase()); err != nil {
		return "", err
	}
	url, err := withDatabase(shared.url, template)
	if err == nil {
		err = fill(ctx, url)
	}
	if err != nil {
		return "", errors.Join(err, dropDatabase(template))
	}
	if templates.made == nil {
		templates.made = make(map[string]string)
	}
	templates.made[name] = template
	return template, nil
}

func dropDatabase(name string) error {
	return execute(context.Background(), shared.url, "DROP DATABASE "+name+" WITH (FORCE)")
}

// dropTemplates drops the templates on a server that continues after this process.
func dropTemplates() (err error) {
	templates.mu.Lock()
	defer templates.mu.Unlock()
	if shared.server == nil {
		for _, template := range templates.made {
			err = errors.Join(err, dropDatabase(template))
		}
	}
	clear(templates.made)
	return err
}
