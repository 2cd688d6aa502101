package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

const (
	width  = 40               // of the bar, in characters
	frames = time.Second / 20 // between two drawings
)

// bar shows the progress: in place on a terminal, and in a few lines elsewhere.
type bar struct {
	name     string
	total    int
	terminal bool
	drawn    time.Time
	tenth    int // the last tenth that was shown, if the output is no terminal
	begun    time.Time
}

func newBar(name string, total int) *bar {
	info, err := os.Stdout.Stat()
	return &bar{name: name, total: total, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0, begun: time.Now()}
}

// show draws the bar at n.
func (b *bar) show(n int) {
	if !b.terminal {
		if tenth := n * 10 / b.total; tenth >= b.tenth+2 || tenth == 10 && b.tenth < 10 {
			b.tenth = tenth
			fmt.Printf("%-6s  %3d %%  %d steps\n", b.name, n*100/b.total, n)
		}
		return
	}
	if n < b.total && time.Since(b.drawn) < frames {
		return
	}
	b.drawn = time.Now()
	full := n * width / b.total
	fmt.Printf("\r\x1b[K%-6s  %s%s %3d %%  %d of %d steps  %.1f s", b.name,
		strings.Repeat("█", full), strings.Repeat("░", width-full), n*100/b.total, n, b.total, time.Since(b.begun).Seconds())
}

// say prints a line above the bar.
func (b *bar) say(format string, args ...any) {
	if b.terminal {
		fmt.Print("\r\x1b[K")
		b.drawn = time.Time{}
	}
	fmt.Printf("%-6s  %s\n", b.name, fmt.Sprintf(format, args...))
}

// end moves the terminal's cursor to the line below the bar.
func (b *bar) end() {
	if b.terminal {
		fmt.Println()
	}
}
