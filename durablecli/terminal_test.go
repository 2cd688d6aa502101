package durablecli_test

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
)

// screen is a pseudo-terminal, and what commands have written to it.
type screen struct {
	tty  *os.File
	host *os.File
	mu   sync.Mutex
	text bytes.Buffer
	read chan struct{} // closed when everything was read
}

func newScreen(t *testing.T, width, height int) *screen {
	t.Helper()
	host, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(tty, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}); err != nil {
		t.Fatal(err)
	}
	s := &screen{tty: tty, host: host, read: make(chan struct{})}
	go func() {
		defer close(s.read)
		buffer := make([]byte, 4096)
		for {
			n, err := host.Read(buffer)
			s.mu.Lock()
			s.text.Write(buffer[:n])
			s.mu.Unlock()
			if err != nil { // EIO, when the other side is closed
				return
			}
		}
	}()
	t.Cleanup(func() { tty.Close(); <-s.read; host.Close() })
	return s
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ReplaceAll(s.text.String(), "\r\n", "\n")
}

// finish closes the terminal, and returns everything that was written to it.
func (s *screen) finish() string {
	s.tty.Close()
	<-s.read
	return s.String()
}

// run executes a command on the terminal, and returns its exit code.
func (s *screen) run(t *testing.T, args ...string) int {
	t.Helper()
	cmd := durablecli.Command(nil)
	cmd.SetArgs(args)
	cmd.SetOut(s.tty)
	cmd.SetErr(s.tty)
	cmd.SetIn(s.tty)
	err := cmd.ExecuteContext(within(t))
	if err != nil {
		io.WriteString(s.tty, "Error: "+err.Error()+"\n")
	}
	return durablecli.ExitCode(err)
}

// On a terminal, lines have colours and fit into its width; in a pipe, they have neither colours nor a bound.
func TestTerminal(t *testing.T) {
	t.Parallel()
	p := onFile(t)
	e, stop := p.engine(t)
	long := "order-" + strings.Repeat("x", 200)
	await(t, start(t, e, order, long, "book"))
	await(t, start(t, e, order, "漢字漢字漢字漢字漢字漢字漢字漢字", "declined"))
	stop()

	const width = 60
	s := newScreen(t, width, 24)
	if code := s.run(t, append([]string{"list"}, p.flags...)...); code != 0 {
		t.Fatalf("exit code %d: %s", code, s)
	}
	shown := s.finish()
	if !strings.Contains(shown, "\x1b[31mfailed\x1b[0m") || !strings.Contains(shown, "…") {
		t.Errorf("the terminal shows no colours or no shortened text:\n%s", shown)
	}
	for line := range strings.Lines(shown) {
		if n := displayWidth(line); n > width {
			t.Errorf("a line is %d characters wide: %s", n, line)
		}
	}
	if piped := p.run(t, "list").out; strings.Contains(piped, "\x1b") || !strings.Contains(piped, long) {
		t.Errorf("the pipe has colours or shortened texts:\n%s", piped)
	}

	wide := newScreen(t, width, 24)
	wide.run(t, append([]string{"list", "-o", "wide", "--no-color"}, p.flags...)...)
	if shown := wide.finish(); strings.Contains(shown, "\x1b") || !strings.Contains(shown, long) {
		t.Errorf("-o wide --no-color has colours or shortened texts:\n%s", shown)
	}
}

// displayWidth returns how many columns of a terminal a line takes.
func displayWidth(line string) (n int) {
	for i := 0; i < len(line); {
		if strings.HasPrefix(line[i:], "\x1b[") {
			i += strings.IndexByte(line[i:], 'm') + 1
			continue
		}
		r := []rune(line[i:])[0]
		switch {
		case r == '\n':
		case r >= 0x3000:
			n += 2
		default:
			n++
		}
		i += len(string(r))
	}
	return n
}

func TestNoColor(t *testing.T) {
	p := onFile(t)
	t.Setenv("NO_COLOR", "1")
	s := newScreen(t, 80, 24)
	s.run(t, append([]string{"counts"}, p.flags...)...)
	if shown := s.finish(); strings.Contains(shown, "\x1b") {
		t.Errorf("NO_COLOR is set, and the output has colours: %q", shown)
	}
}

// hostile is a text that would rewrite a terminal, with characters of each kind that is escaped.
const hostile = "\x1b]0;owned\a\x1b[2J\r\u009b31m\u202egnirts\u2028\x7f"

// Names cannot have control characters, so hostile text comes in payloads, errors, reasons and the names that other programs write.
func TestHostileText(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e := p.client(t)
		start(t, e, order, "order-\u202e1", hostile, durable.Tag("a.b", "\u202ev"))
		if _, err := e.Pause(within(t), "order-\u202e1", durable.Reason(hostile), durable.Actor(hostile)); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Cancel(within(t), "order-\u202e1", durable.Reason(hostile), durable.Actor(hostile)); err != nil {
			t.Fatal(err)
		}
		if err := e.SetQueue(within(t), "q\u202e", durable.QueueSettings{MaxInProgress: 1}, durable.Reason(hostile), durable.Actor(hostile)); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"list"},
			{"get", "order-\u202e1"},
			{"history", "order-\u202e1"},
			{"tree", "order-\u202e1"},
			{"events"},
			{"queues"},
			{"failures"},
			{"generations", "order-\u202e1"},
			{"top", "--once"},
			{"doctor"},
			{"get", "missing\x1b[2J"},
		} {
			for _, format := range []string{"table", "wide", "json", "jsonl", "id"} {
				got := p.try(t, append(args, "-o", format)...)
				if format == "id" { // for another command, which must get the ID that the run has
					got.out = strings.ReplaceAll(got.out, "\u202e", "")
				}
				for _, text := range []string{got.out, got.err} {
					if strings.ContainsAny(text, "\x1b\a\r\u009b\u202e\u2028\x7f") {
						t.Errorf("%q -o %s lets control characters through: %q", args, format, text)
					}
				}
			}
		}
		if got := p.run(t, "get", "order-\u202e1").out; !strings.Contains(got, `\u202e1`) || !strings.Contains(got, `\x9b31m`) {
			t.Errorf("the text is not shown escaped: %s", got)
		}
	})
}

// The lines of top fit into the width of the terminal, also those above its tables.
func TestTopFitsTheTerminal(t *testing.T) {
	t.Parallel()
	p := onFile(t)
	start(t, p.client(t), order, "order-1", "book")
	s := newScreen(t, 30, 24)
	s.run(t, append([]string{"top", "--once"}, p.flags...)...)
	shown := s.finish()
	for line := range strings.Lines(shown) {
		if displayWidth(line) > 30 {
			t.Errorf("a line is too wide: %q", line)
		}
	}
	if !strings.Contains(shown, "live runs") || !strings.Contains(shown, "…") {
		t.Errorf("top shows %s", shown)
	}
}

// With -o wide, all times are exact, also those in a text.
func TestWideHasExactTimes(t *testing.T) {
	t.Parallel()
	p := onFile(t)
	e := p.client(t)
	if err := e.SetQueue(within(t), "mail", durable.QueueSettings{MaxInProgress: 1}); err != nil {
		t.Fatal(err)
	}
	if err := e.PauseQueue(within(t), "mail", durable.Reason("audit")); err != nil {
		t.Fatal(err)
	}
	if err := e.SetSchedule(within(t), durable.Schedule{Name: "nightly", Workflow: "order", Every: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if err := e.PauseSchedule(within(t), "nightly", durable.Reason("audit")); err != nil {
		t.Fatal(err)
	}
	for _, noun := range []string{"queues", "schedules"} {
		if got := p.run(t, noun, "-o", "wide").out; !regexp.MustCompile(`paused \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z: audit`).MatchString(got) {
			t.Errorf("%s -o wide shows\n%s", noun, got)
		}
		if got := p.run(t, noun).out; !regexp.MustCompile(`paused (now|.* ago): audit`).MatchString(got) {
			t.Errorf("%s shows\n%s", noun, got)
		}
	}
}
