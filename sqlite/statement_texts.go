package sqlite

import "strings"

// statementTexts holds the text of every statement.
type statementTexts [queryCount]string

// loadStatements reads the embedded files. It trims what follows the statement: the driver treats any text after it,
// even a line feed, as a second statement, and would parse the text again at each use.
func loadStatements() *statementTexts {
	var all statementTexts
	for q := qBegin; q < queryCount; q++ {
		b, err := sqlFiles.ReadFile("sql/" + sqlFileName(q))
		if err != nil {
			panic("sqlite: the embedded statement is missing: " + err.Error())
		}
		all[q] = strings.TrimRight(string(b), "; \t\r\n")
	}
	return &all
}
