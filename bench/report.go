package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/seed8ec063be/durable/bench/result"
)

// columns are the columns of the table. The printed lines lack the figures of Row.More.
var columns = []struct{ title, figure string }{
	{"workflows/s", "wf_per_s"},
	{"steps/s", "steps_per_s"},
	{"of ceiling", "ceiling_ratio"},
	{"x naive", "naive_ratio"},
	{"of local", "local_ratio"},
	{"p50 ms", "p50_ms"},
	{"p99 ms", "p99_ms"},
	{"transactions/workflow", "xacts_per_wf"},
	{"bytes/step", "bytes_per_step"},
	{"writes/flush", "batch"},
	{"ms/flush", "flush_ms"},
}

// table prints the rows of the default mode as a table.
func (b *bench) table() {
	t := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	rows := 0
	for _, r := range b.report.Rows {
		if r.Mode != result.Default {
			continue
		}
		if rows++; rows == 1 {
			fmt.Fprint(t, "\nstore\tpath\tc\t")
			for _, c := range columns {
				fmt.Fprint(t, c.title, "\t")
			}
			fmt.Fprintln(t)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t", r.Store, r.Path, r.C)
		for _, c := range columns {
			fmt.Fprint(t, r.Get(c.figure), "\t")
		}
		fmt.Fprintln(t)
	}
	if rows > 0 {
		fmt.Fprintln(t)
	}
	_ = t.Flush() // to a terminal or a pipe, to which the lines above were printed too
}
