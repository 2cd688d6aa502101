package main

import (
	"errors"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/seed8ec063be/durable/bench/result"
)

// Sizes in pixels. Each store is a column of two panels, with throughput above latency.
const (
	panelWidth  = 340
	panelHeight = 210
	left        = 58 // width of the axis numbers of a panel
	top         = 46 // height above the first panel, for the store's name
	gap         = 40 // height under a panel, for the numbers of callers
	legend      = 52
)

// curve describes one line of a panel.
type curve struct {
	label  string
	figure string
	path   string
	color  string
	dashed bool
}

// The colours can be distinguished by people who cannot see red and green (Okabe and Ito).
var throughput = []curve{
	{"ceiling", "steps_per_s", "ceiling", "#666666", true},
	{"durable, started here", "steps_per_s", "local", "#0072b2", false},
	{"durable, started elsewhere", "steps_per_s", "claimed", "#009e73", false},
	{"naive", "steps_per_s", "naive", "#d55e00", false},
}

var latency = []curve{
	{"durable p50", "p50_ms", "local", "#0072b2", false},
	{"durable p99", "p99_ms", "local", "#0072b2", true},
	{"naive p50", "p50_ms", "naive", "#d55e00", false},
	{"naive p99", "p99_ms", "naive", "#d55e00", true},
}

// point is a point in the units of the axes.
type point struct{ x, y float64 }

// draw returns the picture as SVG. Both axes of every panel are logarithmic, and all panels of a
// row have the same axes.
func draw(r *result.Report) (string, error) {
	var stores []string
	var callers []float64
	for _, row := range r.Rows {
		if row.Mode != result.Default {
			continue
		}
		if !slices.Contains(stores, row.Store) {
			stores = append(stores, row.Store)
		}
		callers = append(callers, float64(row.C))
	}
	if len(stores) == 0 {
		return "", errors.New("the file has no rows of the default mode")
	}
	across := spread(callers)
	width := len(stores) * (left + panelWidth)
	height := top + 2*(panelHeight+gap+legend)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n",
		width+20, height, width+20, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width+20, height)
	for level, curves := range [][]curve{throughput, latency} {
		var values []float64
		for _, store := range stores {
			for _, c := range curves {
				for _, p := range points(r, store, c) {
					values = append(values, p.y)
				}
			}
		}
		for i, store := range stores {
			at := panel{x: i*(left+panelWidth) + left, y: top + level*(panelHeight+gap+legend), across: across, up: spread(values)}
			title := store
			if level == 1 {
				title = ""
			}
			at.frame(&b, title, []string{"steps/s", "ms of a workflow"}[level])
			for k, c := range curves {
				at.curve(&b, c, points(r, store, c))
				if i == 0 {
					at.drawLegendEntry(&b, c, k)
				}
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}

// points returns the known values of a curve by number of callers.
func points(r *result.Report, store string, c curve) (found []point) {
	for _, row := range r.Rows {
		if v := row.Get(c.figure); row.Mode == result.Default && row.Store == store && row.Path == c.path && v > 0 {
			found = append(found, point{float64(row.C), float64(v)})
		}
	}
	slices.SortFunc(found, func(a, b point) int { return int(a.x - b.x) })
	return found
}

// span is the range of an axis. from and to are powers of ten.
type span struct{ from, to float64 }

func spread(values []float64) span {
	if len(values) == 0 {
		return span{0, 1}
	}
	s := span{math.Floor(math.Log10(slices.Min(values))), math.Ceil(math.Log10(slices.Max(values)))}
	if s.to == s.from {
		s.to++
	}
	return s
}

// part returns the position of v between the ends of the axis, from 0 to 1.
func (s span) part(v float64) float64 { return (math.Log10(v) - s.from) / (s.to - s.from) }

// panel is one diagram. x and y are its upper left corner.
type panel struct {
	x, y       int
	across, up span
}

func (p panel) at(q point) (x, y float64) {
	return float64(p.x) + p.across.part(q.x)*(panelWidth-20), float64(p.y) + (1-p.up.part(q.y))*panelHeight
}

// frame draws the axes, and a line for each power of ten.
func (p panel) frame(b *strings.Builder, title, unit string) {
	if title != "" {
		fmt.Fprintf(b, `<text x="%d" y="%d" font-size="14" font-weight="bold">%s</text>`+"\n", p.x, p.y-22, html.EscapeString(title))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" fill="#444444">%s</text>`+"\n", p.x, p.y-6, html.EscapeString(unit))
	for e := p.up.from; e <= p.up.to; e++ {
		_, y := p.at(point{math.Pow(10, p.across.from), math.Pow(10, e)})
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#dddddd"/>`, p.x, p.x+panelWidth-20, y, y)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end" fill="#444444">%s</text>`+"\n", p.x-6, y+4, power(e))
	}
	for e := p.across.from; e <= p.across.to; e++ {
		x, _ := p.at(point{math.Pow(10, e), math.Pow(10, p.up.from)})
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#dddddd"/>`, x, x, p.y, p.y+panelHeight)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#444444">%s</text>`+"\n", x, p.y+panelHeight+16, power(e))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end" fill="#444444">callers at once</text>`+"\n", p.x+panelWidth-20, p.y+panelHeight+30)
}

// power formats 10^e for readers.
func power(e float64) string {
	switch v := math.Pow(10, e); {
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%gk", v/1e3)
	default:
		return fmt.Sprintf("%g", v)
	}
}

func (p panel) curve(b *strings.Builder, c curve, points []point) {
	if len(points) == 0 {
		return
	}
	var line strings.Builder
	for _, q := range points {
		x, y := p.at(q)
		fmt.Fprintf(&line, "%.1f,%.1f ", x, y)
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s, %g callers: %s</title></circle>`+"\n",
			x, y, c.color, html.EscapeString(c.label), q.x, result.Number(q.y))
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", strings.TrimSpace(line.String()), c.color, c.dash())
}

func (c curve) dash() string {
	if c.dashed {
		return ` stroke-dasharray="5 4"`
	}
	return ""
}

// drawLegendEntry draws the curve's entry in the legend below the row.
func (p panel) drawLegendEntry(b *strings.Builder, c curve, k int) {
	const apart = 190
	x, y := p.x+k*apart, p.y+panelHeight+gap+6
	if k > 1 { // the entries take two lines to fit the width of one panel
		x, y = p.x+(k-2)*apart, y+14
	}
	fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="%s" stroke-width="2"%s/>`, x, x+24, y-4, y-4, c.color, c.dash())
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", x+30, y, html.EscapeString(c.label))
}
