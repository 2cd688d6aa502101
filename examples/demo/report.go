package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// summarize is the function of the last step. It returns the sums, and the largest packages.
func summarize(packages []Package) Report {
	r := Report{Packages: len(packages)}
	sum := sha256.New()
	for _, p := range packages {
		r.Files += p.Files
		r.Lines += p.Lines
		r.Declarations += p.Declarations
		r.Bytes += p.Bytes
		fmt.Fprintf(sum, "%s %s\n", p.Path, p.Hash)
	}
	r.Hash = hex.EncodeToString(sum.Sum(nil))
	largest := slices.Clone(packages)
	slices.SortStableFunc(largest, func(a, b Package) int { return cmp.Compare(b.Lines, a.Lines) })
	r.Largest = largest[:min(8, len(largest))]
	return r
}

// print writes the report as a table.
func (r Report) print(to io.Writer) {
	fmt.Fprintln(to)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "files\tlines\tdeclarations\tkB\t  package")
	row := func(files, lines, declarations int, bytes int64, name string) {
		fmt.Fprintf(table, "%d\t%d\t%d\t%d\t  %s\n", files, lines, declarations, bytes/1000, name)
	}
	for _, p := range r.Largest {
		row(p.Files, p.Lines, p.Declarations, p.Bytes, p.Path)
	}
	row(r.Files, r.Lines, r.Declarations, r.Bytes, fmt.Sprintf("all %d packages", r.Packages))
	_ = table.Flush() // like fmt.Println, print ignores the error
	fmt.Fprintln(to, "\nSHA-256 of it all:", r.Hash)
}
