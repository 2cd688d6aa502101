package durablecli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
	"github.com/seed8ec063be/durable/sqlite"
)

// A program with workflows of its own has all commands of durable.
func ExampleCommand() {
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
	cmd := durablecli.Command(engine)
	cmd.SetArgs([]string{"counts", "--status", "failed"}) // without this line: the arguments of the process
	code := durablecli.Execute(context.Background(), cmd) // for os.Exit
	fmt.Println(code == durablecli.ExitDone)
	// Output:
	// STATUS  RUNS
	// failed     0
	// true
}

// A program that executes the command itself finds out what to exit with.
func ExampleExitCode() {
	cmd := durablecli.Command(nil)
	cmd.SetArgs([]string{"get"})
	err := cmd.Execute()
	fmt.Println(err)
	fmt.Println(durablecli.ExitCode(err) == durablecli.ExitUsage)
	// Output:
	// give the ID or the UUID of one run: write durable get ID [flags]
	// true
}
