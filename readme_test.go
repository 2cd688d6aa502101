package durable_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable/internal/pgtest"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// fragment is the program that a block which is none stands in.
const fragment = `package main

import (
	"context"
	"log"
	"os"

	"github.com/seed8ec063be/durable/postgres"
)

func main() {
	ctx := context.Background()
	BLOCK
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}
}
`

// Every Go block of the README is compiled and run.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	hello, err := os.ReadFile("examples/hello/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(hello, []byte("\n")); lines > 30 {
		t.Errorf("hello has %d lines, at most 30 are promised", lines)
	}
	wants := []string{"counted to 5 <nil>", "", "payment of <nil>", "1 completed <nil>", "1999 <nil>"}
	blocks := goBlock.FindAllSubmatch(text, -1)
	if len(blocks) != len(wants) {
		t.Fatalf("%d Go blocks, and %d expectations", len(blocks), len(wants))
	}
	if !bytes.Equal(blocks[0][1], hello) {
		t.Error("the hello program is not examples/hello/main.go")
	}
	database := pgtest.URL(t)
	for i, block := range blocks {
		program := string(block[1])
		if !strings.HasPrefix(program, "package") {
			program = strings.Replace(fragment, "BLOCK", strings.TrimSpace(program), 1)
		}
		// Below the module, so that its packages are found; with a dot, so that ./... does not.
		dir, err := os.MkdirTemp(".", ".readme-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		binary := filepath.Join(t.TempDir(), "program")
		if out, err := exec.Command("go", "build", "-o", binary, "./"+dir).CombinedOutput(); err != nil {
			t.Errorf("block %d does not compile: %v\n%s", i, err, out)
			continue
		}
		cmd := exec.CommandContext(within(t), binary)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "DATABASE_URL="+database, "TMPDIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), wants[i]) {
			t.Errorf("block %d: %v, it printed %q, want %q", i, err, out, wants[i])
		}
	}
}

// Every test that the guarantees name exists.
func TestReadmeNamesTests(t *testing.T) {
	text, err := os.ReadFile("README.md")
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
		t.Errorf("the README names %d tests, want one a guarantee", len(names))
	}
	for _, name := range names {
		if !bytes.Contains(all, append([]byte("func "), append(name[1], '(')...)) {
			t.Errorf("%s is in the README, and is no test", name[1])
		}
	}
}
