// Package result contains the report of a benchmark, which `bench -json` writes and bench/plot
// reads.
package result

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// Report is one run of the benchmark.
type Report struct {
	Taken    string            `json:"taken"` // RFC 3339
	Go       string            `json:"go"`
	CPUs     int               `json:"cpus"`
	Settings map[string]string `json:"settings"` // the settings that were in force, by store
	Rows     []*Row            `json:"rows"`
}

// Row is one line of the report: what was measured, where, and the figures in the order of the
// line.
type Row struct {
	Mode    string   `json:"mode"`
	Store   string   `json:"store"`
	Path    string   `json:"path,omitempty"`
	C       int      `json:"c,omitempty"` // concurrent callers; zero: not applicable
	Figures []Figure `json:"figures"`     // medians over the rounds
	More    []Figure `json:"more,omitempty"`
}

// Figure is one number with its name, which ends in the unit.
type Figure struct {
	Name  string    `json:"name"`
	Value Number    `json:"value"`
	Each  []float64 `json:"each,omitempty"` // one value per round, if there were several rounds
}

// Number is a figure that may be unknown. An unknown number is NaN in Go and null in JSON.
type Number float64

// Unknown is a figure that was not measured, or cannot be measured.
var Unknown = Number(math.NaN())

// Known reports whether the number is known. A ratio to zero is unknown.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(text []byte) error {
	*n = Unknown
	if string(text) == "null" {
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}

// String returns the number with four significant digits and without an exponent, or "-" if it is
// unknown.
func (n Number) String() string {
	switch v := math.Abs(float64(n)); {
	case !n.Known():
		return "-"
	case v >= 100 || v == math.Trunc(v):
		return strconv.FormatFloat(float64(n), 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(float64(n), 'f', 1, 64)
	case v >= 0.1:
		return strconv.FormatFloat(float64(n), 'f', 2, 64)
	default:
		return strconv.FormatFloat(float64(n), 'f', 4, 64)
	}
}

// Get returns the figure with the given name from Figures or More, or Unknown if there is none.
func (r *Row) Get(name string) Number {
	for _, list := range [][]Figure{r.Figures, r.More} {
		for _, f := range list {
			if f.Name == name {
				return f.Value
			}
		}
	}
	return Unknown
}

// Default is the mode whose name is left out of the lines.
const Default = "default"

// Line returns the row as one line of text.
func (r *Row) Line() string {
	var b strings.Builder
	b.WriteString("bench:")
	if r.Mode != Default {
		fmt.Fprintf(&b, " mode=%s", r.Mode)
	}
	fmt.Fprintf(&b, " store=%s", r.Store)
	if r.Path != "" {
		fmt.Fprintf(&b, " path=%s", r.Path)
	}
	if r.C > 0 {
		fmt.Fprintf(&b, " c=%d", r.C)
	}
	for _, f := range r.Figures {
		fmt.Fprintf(&b, " %s=%s", f.Name, f.Value)
	}
	return b.String()
}

// Write writes the report to a file.
func (r *Report) Write(name string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}

// Read reads a report that Write wrote.
func Read(name string) (*Report, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := new(Report)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s is no file that bench -json wrote: %w", name, err)
	}
	return r, nil
}
