package durablecli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/seed8ec063be/durable"
)

// While the database is away, a screen keeps what was shown last, with the latest error below. Nothing is wider or higher than the terminal.
func TestRepeatDuringAnOutage(t *testing.T) {
	t.Parallel()
	tty, err := os.Open(os.DevNull) // its size is taken to be 80 to 24
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	var out bytes.Buffer
	s := &session{globalFlags: &globalFlags{}, printer: &printer{out: &out, format: formatTable, terminal: tty, colors: true, now: time.Now}}
	ctx, cancel := context.WithCancel(t.Context())
	shown := 0
	err = s.repeat(ctx, time.Millisecond, func(context.Context) error {
		switch shown++; {
		case shown == 1:
			return s.write(s.paint(red, strings.Repeat("wide ", 30)) + strings.Repeat("\nrow", 40) + "\n")
		case shown == 5:
			cancel()
			return nil
		}
		return fmt.Errorf("%w: attempt %d %sthe end", durable.ErrUnavailable, shown, strings.Repeat("word ", 30))
	})
	if err == nil {
		t.Fatal("it ended without an error")
	}
	frames := strings.Split(out.String(), "\x1b[H")
	last := frames[len(frames)-1]
	if len(frames) != 5 || strings.Count(last, "the database is not available") != 1 || !strings.Contains(last, "attempt 4") || !strings.Contains(last, "the end") || !strings.Contains(last, "wide") || !strings.Contains(last, "… ") {
		t.Errorf("%d frames, the last is\n%q", len(frames), last)
	}
	lines := strings.Split(strings.TrimSuffix(last, "\x1b[J"), "\n")
	if len(lines) > 24 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		text := line
		for _, code := range []string{"\x1b[31m", "\x1b[2m", "\x1b[0m", "\x1b[K"} {
			text = strings.ReplaceAll(text, code, "")
		}
		if runewidth.StringWidth(text) > 80 || strings.Contains(line, "\x1b[31m") && !strings.Contains(line, "\x1b[0m") {
			t.Errorf("a line is too wide, or leaves its colour: %q", line)
		}
	}
}
