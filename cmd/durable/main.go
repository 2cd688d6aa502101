// Command durable operates the runs of a database: it lists, shows and controls runs, queues, limits and schedules, migrates the
// schema and finds what is wrong. See docs/cli.md.
package main

import (
	"context"
	"os"

	"github.com/seed8ec063be/durable/durablecli"
)

func main() {
	os.Exit(durablecli.Execute(context.Background(), durablecli.Command(nil)))
}
