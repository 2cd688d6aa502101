package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable/bench/result"
)

func sample() *result.Report {
	r := new(result.Report)
	for i, c := range []int{1, 16, 100} {
		for _, path := range []string{"ceiling", "naive", "local", "claimed"} {
			p99 := result.Number(20 * (i + 1))
			if path == "naive" && c == 100 {
				p99 = result.Unknown // no run ended in the window
			}
			r.Rows = append(r.Rows, &result.Row{Mode: result.Default, Store: "postgres", Path: path, C: c, Figures: []result.Figure{
				{Name: "steps_per_s", Value: result.Number(1000 * c)}, {Name: "p50_ms", Value: 5}, {Name: "p99_ms", Value: p99},
			}})
		}
	}
	return r
}

// TestDraw checks that the picture is well-formed and has a point for each known figure.
func TestDraw(t *testing.T) {
	name := filepath.Join(t.TempDir(), "bench.json")
	if err := sample().Write(name); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "bench.svg")
	if err := plot([]string{name}, out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	points := 0
	for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			points++
		}
	}
	if points != 4*3+4*3-1 {
		t.Errorf("%d points, want 23: one latency is unknown", points)
	}
	if strings.Contains(string(text), "NaN") || strings.Contains(string(text), "Inf") {
		t.Error("a coordinate is not a number")
	}
}

func TestNothingToDraw(t *testing.T) {
	if _, err := draw(new(result.Report)); err == nil {
		t.Error("a report without rows was drawn")
	}
	if err := plot(nil, ""); err == nil {
		t.Error("no file was drawn")
	}
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := plot([]string{bad}, ""); err == nil {
		t.Error("half a file was drawn")
	}
}
