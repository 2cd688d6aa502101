package wording

import "strings"

// QuoteForShell returns the text as one word of a POSIX shell.
func QuoteForShell(text string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@+,"
	if text != "" && strings.Trim(text, safe) == "" && text[0] != '-' {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// ShellArgument returns a name as an argument of a command, after its flags. Quotes do not keep a command from reading a name that begins with a
// dash as flags, so -- precedes it.
func ShellArgument(name string) string {
	if strings.HasPrefix(name, "-") {
		return "-- " + QuoteForShell(name)
	}
	return QuoteForShell(name)
}
