package durablecli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed8ec063be/durable/internal/wording"
)

// The output formats.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatJSONL = "jsonl"
	formatID    = "id"
)

var formats = []string{formatTable, formatWide, formatJSON, formatJSONL, formatID}

// printer writes the data and the messages of a command.
type printer struct {
	out, err io.Writer
	in       io.Reader
	format   string
	terminal *os.File // the terminal that out is; nil if it is none
	colors   bool
	now      func() time.Time // the time to which ages are relative: the database's, as soon as it is known
}

func (f *globalFlags) newPrinter(cmd *cobra.Command) (*printer, error) {
	p := &printer{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), in: cmd.InOrStdin(), format: f.output, now: f.clock}
	if isTerminal(p.out) {
		p.terminal = p.out.(*os.File)
	}
	p.colors = p.terminal != nil && !f.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	for _, known := range formats {
		if f.output == known {
			return p, nil
		}
	}
	return nil, newUsageError("the output format %q does not exist: use one of %s", f.output, strings.Join(formats, ", "))
}

// isTerminal reports whether a reader or writer is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// size returns the width and height of the terminal; zero if the output is none.
func (p *printer) size() (width, height int) {
	if p.terminal == nil {
		return 0, 0
	}
	width, height, err := term.GetSize(int(p.terminal.Fd()))
	if err != nil {
		return 80, 24
	}
	return width, height
}

// writeMessage writes a message to standard error.
func (p *printer) writeMessage(format string, args ...any) {
	fmt.Fprintln(p.err, wording.EscapeLines(fmt.Sprintf(format, args...)))
}

func (p *printer) warn(format string, args ...any) { p.writeMessage("warning: "+format, args...) }

// color is a colour of a terminal, as the parameter of its escape sequence.
type color string

const (
	plain  color = ""
	bold   color = "1"
	faint  color = "2"
	red    color = "31"
	green  color = "32"
	yellow color = "33"
	cyan   color = "36"
)

// paint returns the text in a colour, if the output has colours.
func (p *printer) paint(c color, text string) string {
	if !p.colors || c == plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// write writes data to standard output. An error, such as that of a closed pipe, ends the command.
func (p *printer) write(text string) error {
	if _, err := io.WriteString(p.out, text); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// writeID writes an ID in a line. Another command that reads the line must get the ID unchanged, so the ID is escaped only for a terminal, or if it
// contains characters that no valid ID has, such as a line feed.
func (p *printer) writeID(id string) error {
	if p.terminal != nil || strings.ContainsFunc(id, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		id = wording.Escape(id)
	}
	return p.write(id + "\n")
}

// printRows writes rows in the format of the command. id returns the ID that -o id writes for a row.
func printRows[T any](p *printer, rows []T, id func(*T) string, columns []column[T]) error {
	switch p.format {
	case formatJSON:
		if rows == nil {
			rows = []T{}
		}
		return p.writeJSON(rows, true)
	case formatJSONL:
		for i := range rows {
			if err := p.writeJSON(&rows[i], false); err != nil {
				return err
			}
		}
		return nil
	case formatID:
		for i := range rows {
			if err := p.writeID(id(&rows[i])); err != nil {
				return err
			}
		}
		return nil
	}
	return p.write(renderTable(p, rows, columns))
}

// printResults writes the results of a command that changes things, as printRows does. If there are none, it writes no table: an error says why.
func printResults[T any](p *printer, results []T, id func(*T) string, columns []column[T]) error {
	if len(results) == 0 && p.writesTables() {
		return nil
	}
	return printRows(p, results, id, columns)
}

// writesTables reports whether the format of the command is one for people.
func (p *printer) writesTables() bool { return p.format == formatTable || p.format == formatWide }

// field is one line of a description.
type field struct {
	label string
	text  string // of one or more lines; empty: the line is left out
	color color
}

// writeDescription writes one thing in the format of the command: in a table format, a line for each field.
func (p *printer) writeDescription(value any, id string, fields func() []field) error {
	switch p.format {
	case formatJSON, formatJSONL:
		return p.writeJSON(value, p.format == formatJSON)
	case formatID:
		return p.writeID(id)
	}
	shown, widest := []field{}, 0
	for _, f := range fields() {
		if f.text != "" {
			shown = append(shown, f)
			widest = max(widest, len(f.label))
		}
	}
	var b strings.Builder
	for _, f := range shown {
		for i, line := range strings.Split(strings.TrimRight(f.text, "\n"), "\n") {
			label := ""
			if i == 0 {
				label = f.label
			}
			fmt.Fprintf(&b, "%s  %s\n", p.paint(faint, fmt.Sprintf("%-*s", widest, label)), p.paint(f.color, wording.EscapeLines(line)))
		}
	}
	return p.write(b.String())
}

// writeJSON writes the JSON of a value and a line feed.
func (p *printer) writeJSON(v any, indent bool) error {
	text, err := wording.EncodeJSON(v, indent)
	if err != nil {
		return err
	}
	return p.write(text + "\n")
}
