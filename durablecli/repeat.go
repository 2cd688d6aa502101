package durablecli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// repeat calls show again and again, and writes its content to the terminal, until ctx ends. While the database is not available,
// the last content stays, with the error below it.
func (s *session) repeat(ctx context.Context, interval time.Duration, show func(context.Context) error) error {
	if s.terminal == nil || s.format != formatTable && s.format != formatWide {
		return newUsageError("%s", s.withProgramName("a screen that repeats needs a terminal and a table: in a script, call the command again, or use durable events --follow"))
	}
	if interval <= 0 {
		return newUsageError("--interval is %v: it must be positive", interval)
	}
	screen, last := s.out, ""
	var failure []string // the lines of the latest error, if the database is not available
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		var content bytes.Buffer
		s.out = &content
		err := show(ctx)
		s.out = screen
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, durable.ErrUnavailable):
			width, _ := s.size()
			failure = wrapWords(wording.Escape(err.Error()), width)
		case err != nil:
			return err
		default:
			last, failure = content.String(), nil
		}
		if err := s.write(s.screenText(last, failure)); err != nil {
			return err
		}
		timer.Reset(interval)
	}
}

// screenText returns the text that draws the content on a screen, with an error below it: as many lines of the content as fit, from the top. The text
// clears each line to its end, and then everything below the last line, so that the screen does not flicker.
func (s *session) screenText(content string, failure []string) string {
	width, height := s.size()
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	if room := max(1, height-2-len(failure)); len(lines) > room {
		lines = append(lines[:room-1], s.paint(faint, fmt.Sprintf("… %d more", len(lines)-room+1)))
	}
	for _, line := range failure {
		lines = append(lines, s.paint(red, line))
	}
	for i := range lines {
		lines[i] = fitLine(lines[i], width) // a line that wraps would move the lines below it
	}
	const home, clearLine, clearBelow = "\x1b[H", "\x1b[K", "\x1b[J"
	clock := s.paint(faint, "as of "+s.now().Format(time.TimeOnly))
	return home + strings.Join(append(lines, clock), clearLine+"\n") + clearLine + "\n" + clearBelow
}

// fitLine shortens a line that may have colours to the width; zero means it stays.
func fitLine(line string, width int) string {
	if width <= 0 || runewidth.StringWidth(sequences.ReplaceAllString(line, "")) <= width {
		return line
	}
	var b strings.Builder
	used, hasColor := 0, false
	for line != "" {
		if at := sequences.FindStringIndex(line); at != nil && at[0] == 0 {
			b.WriteString(line[:at[1]])
			line, hasColor = line[at[1]:], true
			continue
		}
		r, size := utf8.DecodeRuneInString(line)
		if used += runewidth.RuneWidth(r); used >= width {
			break
		}
		b.WriteRune(r)
		line = line[size:]
	}
	b.WriteString("…")
	if hasColor {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// sequences matches the escape sequences that paint writes.
var sequences = regexp.MustCompile("\x1b\\[[0-9;]*m")
