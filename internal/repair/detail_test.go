package repair

import (
	"fmt"
	"testing"

	"github.com/seed8ec063be/durable/internal/record"
)

// The lists that users get of a repair and of a copy have at most the documented number of names.
func TestDetailHasAtMostTheDocumentedNumberOfNames(t *testing.T) {
	h := failedRun(t, "", "step first completed")
	values := make(map[string][]byte)
	for i := range 2 * (record.MaxRepairNames + 1) {
		name := fmt.Sprint("s", i)
		h.call("step " + name + " completed")
		if i%2 == 0 {
			values[name] = []byte("1")
		}
	}
	h.live()
	q := laterRequest()
	q.From = "first"
	check := func(what string, d *record.RepairDetail, renewed int) {
		t.Helper()
		if len(d.Dropped) != record.MaxRepairNames || len(d.Corrected) != record.MaxRepairNames || len(d.Renewed) != renewed {
			t.Errorf("%s: %d dropped, %d corrected, %d renewed", what, len(d.Dropped), len(d.Corrected), len(d.Renewed))
		}
	}
	check("a fork", &done(t)(PlanFork(&h.RunToRepair, q, values)).Detail, record.MaxRepairNames)
	_, d, err := CopyHistory(&h.RunToRepair, q, values)
	if err != nil {
		t.Fatal(err)
	}
	check("a copy", &d, 0)
}
