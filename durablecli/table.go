package durablecli

import (
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/seed8ec063be/durable/internal/wording"
)

// column is one column of a table.
type column[T any] struct {
	title           string
	text            func(*T) string
	color           func(*T) color // nil: none
	isWideOnly      bool           // it is shown with -o wide only
	isHiddenIfEmpty bool           // it is shown only if a row has a text
	alignsRight     bool           // its texts are aligned to the right
	isShortenedLast bool           // it is shortened last, if the terminal is too narrow
}

const (
	gap            = "  " // between two columns
	minColumnWidth = 8    // to which a column is shortened
)

// renderTable returns the table. On a terminal, lines are not longer than its width. With -o wide, nothing is shortened.
func renderTable[T any](p *printer, rows []T, columns []column[T]) string {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c column[T]) bool {
		return c.isWideOnly && p.format != formatWide || c.isHiddenIfEmpty && !slices.ContainsFunc(rows, func(r T) bool { return c.text(&r) != "" })
	})
	cells, widths := make([][]string, 1+len(rows)), make([]int, len(columns))
	for i := range cells {
		cells[i] = make([]string, len(columns))
		for j, c := range columns {
			text := c.title
			if i > 0 {
				text = wording.Escape(c.text(&rows[i-1]))
			}
			cells[i][j], widths[j] = text, max(widths[j], runewidth.StringWidth(text))
		}
	}
	limit, _ := p.size()
	if limit > 0 && p.format != formatWide {
		shortenColumns(widths, columns, limit)
	} else {
		limit = 0
	}
	var b strings.Builder
	for i, row := range cells {
		used, space := 0, ""
		for j, c := range columns {
			text := row[j]
			if j > 0 {
				space += gap
			}
			if limit > 0 {
				if room := min(widths[j], limit-used-len(space)); room > 0 {
					text = runewidth.Truncate(text, room, "…")
				} else {
					text = ""
				}
			}
			padding := strings.Repeat(" ", max(0, widths[j]-runewidth.StringWidth(text)))
			if c.alignsRight {
				space, padding = space+padding, ""
			}
			if text == "" {
				space += padding
				continue
			}
			used += len(space) + runewidth.StringWidth(text)
			paint := faint
			if i > 0 {
				paint = plain
				if c.color != nil {
					paint = c.color(&rows[i-1])
				}
			}
			b.WriteString(space + p.paint(paint, text))
			space = padding // trailing spaces are left out
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// shortenColumns makes the widest columns narrower until the table fits into limit characters. It shortens columns that are
// marked as isShortenedLast last.
func shortenColumns[T any](widths []int, columns []column[T], limit int) {
	excess := (len(widths) - 1) * len(gap)
	for _, w := range widths {
		excess += w
	}
	excess -= limit
	for _, keep := range []bool{false, true} {
		for excess > 0 {
			widest := -1
			for j, c := range columns {
				if c.isShortenedLast == keep && widths[j] > minColumnWidth && (widest < 0 || widths[j] > widths[widest]) {
					widest = j
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
			excess--
		}
	}
}
