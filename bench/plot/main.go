// Command plot draws what `bench -json` wrote: throughput and latency against the number of
// callers, for each store.
//
//	go run ./bench/plot -o bench.svg bench.json
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/seed8ec063be/durable/bench/result"
)

func main() {
	out := flag.String("o", "", "the SVG file to write; none: standard output")
	flag.Parse()
	if err := plot(flag.Args(), *out); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func plot(args []string, out string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d files are given: name the one that bench -json wrote", len(args))
	}
	report, err := result.Read(args[0])
	if err != nil {
		return err
	}
	text, err := draw(report)
	if err != nil {
		return err
	}
	if out == "" {
		_, err = os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(out, []byte(text), 0o644)
}
