package durablecli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// repeat shows something on the terminal again and again, until ctx ends. While the database is not available, what was shown last
// stays, with the error below.
func (s *session) repeat(ctx context.Context, interval time.Duration, show func(context.Context) error) error {
	if s.terminal == nil || s.format != formatTable && s.format != formatWide {
		return newUsageError("a screen that repeats needs a terminal and a table: in a script, call the command again, or use durable events --follow")
	}
	if interval <= 0 {
		return newUsageError("--interval is %v: it must be positive", interval)
	}
	screen, last := s.out, ""
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
			last = strings.TrimSuffix(last, "\n") + "\n" + s.paint(red, "the database is not available: "+wording.Escape(err.Error())) + "\n"
		case err != nil:
			return err
		default:
			last = content.String()
		}
		if err := s.write(s.screenText(last)); err != nil {
			return err
		}
		timer.Reset(interval)
	}
}

// screenText returns what draws the content on a screen: as many lines as fit, from the top. Each line is cleared to its end and then
// everything below, so that the screen does not flicker.
func (s *session) screenText(content string) string {
	_, height := s.size()
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	if room := max(1, height-2); len(lines) > room {
		lines = append(lines[:room-1], s.paint(faint, fmt.Sprintf("… %d more", len(lines)-room+1)))
	}
	const home, clearLine, clearBelow = "\x1b[H", "\x1b[K", "\x1b[J"
	clock := s.paint(faint, "as of "+s.now().Format(time.TimeOnly))
	return home + strings.Join(append(lines, clock), clearLine+"\n") + clearLine + "\n" + clearBelow
}
