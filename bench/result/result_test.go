package result

import (
	"math"
	"path/filepath"
	"testing"
)

// TestWriteAndRead checks that unknown numbers stay unknown in the file, and are shown as dashes.
func TestWriteAndRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "bench.json")
	r := &Report{Rows: []*Row{{
		Mode: Default, Store: "postgres", Path: "local", C: 16,
		Figures: []Figure{{Name: "wf_per_s", Value: 1234.5, Each: []float64{1200, 1234.5}}, {Name: "p50_ms", Value: Unknown}, {Name: "p99_ms", Value: Number(math.Inf(1))}},
		More:    []Figure{{Name: "batch", Value: 0.25}},
	}}}
	if err := r.Write(name); err != nil {
		t.Fatal(err)
	}
	got, err := Read(name)
	if err != nil {
		t.Fatal(err)
	}
	row := got.Rows[0]
	if row.Get("wf_per_s") != 1234.5 || row.Get("p50_ms").Known() || row.Get("p99_ms").Known() || row.Get("batch") != 0.25 || row.Get("none").Known() {
		t.Errorf("%+v", row)
	}
	if line, want := row.Line(), "bench: store=postgres path=local c=16 wf_per_s=1234 p50_ms=- p99_ms=-"; line != want {
		t.Errorf("%q, want %q", line, want)
	}
	row.Mode, row.C, row.Path = "dispatch", 0, ""
	if line, want := row.Line(), "bench: mode=dispatch store=postgres wf_per_s=1234 p50_ms=- p99_ms=-"; line != want {
		t.Errorf("%q, want %q", line, want)
	}
}

func TestNumber(t *testing.T) {
	for n, want := range map[Number]string{0: "0", 7: "7", 0.01234: "0.0123", 0.5: "0.50", 12.34: "12.3", 12345.6: "12346"} {
		if n.String() != want {
			t.Errorf("%v is shown as %q, want %q", float64(n), n.String(), want)
		}
	}
}
