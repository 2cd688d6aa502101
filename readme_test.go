package durable_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/seed8ec063be/durable/internal/pgtest"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// fragments is the program around the other blocks. Each block is the body of a workflow function, or controls a run from
// outside. The program executes the workflows, and prints their histories.
const fragments = `package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/postgres"
)

var ship = durable.Define("ship", func(c *durable.Ctx, order string) (string, error) { return order, nil })

func bank(ctx context.Context, order, key string) (string, error) { return "receipt of " + order, nil }

func refund(ctx context.Context, order string) error { return nil }

var workflows = []*durable.Workflow[string, string]{
	durable.Define("wait", func(c *durable.Ctx, order string) (string, error) {
		_, err := c.Receive[bool]("approval")
		return "", err
	}),
WORKFLOWS
}

func control(ctx context.Context, engine *durable.Engine) error {
	CONTROL
	return err
}

func main() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := pool.Exec(ctx, "CREATE TABLE booking (id text)"); err != nil {
		log.Fatal(err)
	}
	store, err := postgres.New(pool)
	if err != nil {
		log.Fatal(err)
	}
	definitions := []durable.Definition{ship}
	for _, w := range workflows {
		definitions = append(definitions, w)
	}
	engine, err := durable.New(store, durable.Config{Workflows: definitions})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(ctx)
	stopped := make(chan error)
	go func() { stopped <- engine.Run(ctx) }()
	for i, w := range workflows {
		run, err := w.Start(ctx, engine, "order", durable.ID(fmt.Sprint("order-", 42+i)))
		if err != nil {
			log.Fatal(err)
		}
		if i == 0 {
			if err := control(ctx, engine); err != nil {
				log.Fatal(err)
			}
			for {
				info, err := engine.Get(ctx, run.ID())
				if err != nil {
					log.Fatal(err)
				}
				if info.Status == durable.StatusPaused {
					fmt.Println(info.ID, info.Reason, info.PausedBy)
					break
				}
			}
			continue
		}
		fmt.Println(engine.Signal(ctx, run.ID(), "approval", true))
		fmt.Println(run.Result(ctx))
		all, err := engine.History(ctx, run.ID())
		if err != nil {
			log.Fatal(err)
		}
		for _, x := range all {
			fmt.Println(x.Kind, x.Name, x.Status, string(x.Output))
		}
	}
	stop()
	if err := <-stopped; err != nil {
		log.Fatal(err)
	}
}
`

var result = regexp.MustCompile(`^(\w+), err := `)

// onPostgres changes the program of block Hello as the README says, so that it opens the store of the given block.
func onPostgres(hello, open string) string {
	return strings.NewReplacer(
		"store, err := sqlite.Open(\"count.db\")\n", open,
		"\t\"log\"\n", "\t\"log\"\n\t\"os\"\n",
		"durable/sqlite", "durable/postgres",
	).Replace(hello)
}

// program returns the program that executes the given blocks.
func program(blocks []string) string {
	switch {
	case len(blocks) == 1:
		return blocks[0]
	case len(blocks) == 2:
		return onPostgres(blocks[0], blocks[1])
	}
	var bodies strings.Builder
	control := ""
	for i, block := range blocks {
		found := result.FindStringSubmatch(block)
		switch {
		case strings.Contains(block, "engine."):
			control = block
			continue
		case strings.Contains(block, "Compensate"):
			block += `if err == nil { err = fmt.Errorf("the order failed") }`
		case found != nil:
			block += "_ = " + found[1]
		}
		fmt.Fprintf(&bodies, "durable.Define(\"block%d\", func(c *durable.Ctx, order string) (string, error) {\n%s\nreturn \"\", err\n}),\n", i, block)
	}
	return strings.NewReplacer("WORKFLOWS", bodies.String(), "CONTROL", control).Replace(fragments)
}

// Every Go block of the README is compiled and executed.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(text, []byte("\n")); lines > 200 {
		t.Errorf("the README has %d lines, want at most 200", lines)
	}
	var blocks []string
	for _, found := range goBlock.FindAllSubmatch(text, -1) {
		blocks = append(blocks, string(found[1]))
	}
	if len(blocks) != 9 {
		t.Fatalf("%d Go blocks, want 9", len(blocks))
	}
	for _, test := range []struct {
		name   string
		blocks []string
		wants  []string
	}{
		{"hello", blocks[:1], []string{"counted to 5 <nil>"}},
		{"postgres", blocks[:2], []string{"counted to 5 <nil>"}},
		{"service", blocks[2:3], []string{"stopped: <nil>", "charging"}},
		{"fragments", blocks[3:], []string{
			`step charge completed "receipt of order"`,
			`map send completed`,
			`child ship completed "order"`,
			`compensation refund`,
			`tx book completed 1`,
			`order-42 stock is counted ann`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if file := filepath.Join("examples", test.name, "main.go"); len(test.blocks) == 1 {
				example, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if test.blocks[0] != string(example) {
					t.Errorf("the block is not %s", file)
				}
			}
			text, address := program(test.blocks), ""
			if test.name == "service" {
				address = freeAddress(t)
				text = strings.Replace(text, "localhost:8080", address, 1)
			}
			// The directory is inside of the module, so that its packages are found. Its name begins with a dot, so that ./...
			// ignores it.
			dir, err := os.MkdirTemp(".", ".readme-")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			binary := filepath.Join(t.TempDir(), "program")
			if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, "./"+dir).CombinedOutput(); err != nil {
				t.Fatalf("it does not compile: %v\n%s", err, out)
			}
			cmd := exec.CommandContext(within(t), binary)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "DATABASE_URL="+pgtest.URL(t), "TMPDIR="+t.TempDir())
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if address != "" {
				order(t, cmd, address)
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			for _, want := range test.wants {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it printed %q, want %q", out.String(), want)
				}
			}
		})
	}
}

// order sends an order to a service, and stops the service with SIGTERM.
func order(t *testing.T, cmd *exec.Cmd, address string) {
	for {
		req, err := http.NewRequestWithContext(within(t), http.MethodPost, "http://"+address+"/orders/42", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(req)
		if errors.Is(err, syscall.ECONNREFUSED) {
			continue // the service does not listen yet
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || string(body) != "paid 1999\n" {
			t.Errorf("the response is %q, %v", body, err)
		}
		break
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// freeAddress returns an address on which no process listens.
func freeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// Every test that docs/guarantees.md names exists.
func TestGuaranteesNameTests(t *testing.T) {
	text, err := os.ReadFile("docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, pattern := range []string{"*_test.go", "*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b...)
		}
	}
	names := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(text, -1)
	if len(names) < 12 {
		t.Errorf("docs/guarantees.md names %d tests, want at least one for each guarantee", len(names))
	}
	for _, name := range names {
		if !bytes.Contains(all, append([]byte("func "), append(name[1], '(')...)) {
			t.Errorf("docs/guarantees.md names %s, which is not a test", name[1])
		}
	}
}
