package main

import (
	"embed"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/*.sql
var files embed.FS

// statement returns the text of one file without its comments, which are for readers only.
func statement(name string) string {
	text, err := files.ReadFile("sql/" + name)
	if err != nil {
		panic("bench: embedded file " + name + " is missing: " + err.Error())
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if code, _, _ := strings.Cut(line, "--"); strings.TrimSpace(code) != "" {
			b.WriteString(strings.TrimRight(code, " \n") + "\n")
		}
	}
	return strings.TrimSpace(b.String())
}

// naming returns a statement with the name of a database, which cannot be a parameter.
func naming(file, database string) string {
	return strings.ReplaceAll(statement(file), "bench_database", pgx.Identifier{database}.Sanitize())
}
