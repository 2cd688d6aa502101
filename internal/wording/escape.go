package wording

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names, errors and payloads come from the database, so anybody who starts a run chooses them. Written as they are, control
// characters would let them move the cursor, change colours or the title of the terminal, and imitate other lines; characters that
// change the direction of text would let them look like other names.

// isUnsafe reports whether a terminal must not get the character.
func isUnsafe(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || unicode.Is(unicode.Bidi_Control, r)
}

// Escape returns the text in one line without control characters: they are written as in Go, such as \n and \x1b.
func Escape(text string) string { return escapeExcept(text, "") }

// EscapeLines is escape for a text of several lines: line feeds and tabs stay.
func EscapeLines(text string) string { return escapeExcept(text, "\n\t") }

func escapeExcept(text, kept string) string {
	clean := func(r rune) bool { return (isUnsafe(r) || r == utf8.RuneError) && !strings.ContainsRune(kept, r) }
	if strings.IndexFunc(text, clean) < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case strings.ContainsRune(kept, r) || !isUnsafe(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += max(size, 1)
	}
	return b.String()
}

// EscapeJSON returns JSON whose strings hold no control characters: JSON itself only escapes those below U+0020. Outside of strings
// JSON has none of these characters, apart from the line feeds and tabs between values, which stay.
func EscapeJSON(text string) string {
	if strings.IndexFunc(text, isUnsafe) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isUnsafe(r) && r != '\n' && r != '\t' {
			fmt.Fprintf(&b, `\u%04x`, r) // all of them are below U+10000
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
