package engine

import (
	"slices"
	"testing"

	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// A process that dies loses the numbers of the calls that it had begun and not recorded, so a history has gaps without a repair.
// Only a repair's gap excuses that a call is not made.
func TestOnlyARepairExcusesMissingCalls(t *testing.T) {
	for name, test := range map[string]struct {
		renewal *record.Renewal
		want    []string
	}{
		"first generation":                {nil, []string{"charge", "ship"}},
		"continued as new":                {&record.Renewal{Generation: 3, All: 3}, []string{"charge", "ship"}},
		"repaired":                        {&record.Renewal{Generation: 2}, nil},
		"continued as new, then repaired": {&record.Renewal{Generation: 4, All: 3}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &run{e: &Engine{}}
			r.usedNames = map[string]uintptr{"begin": 1}
			rows := []store.Step{{Name: "begin", Seq: store.EncodeSeq(1, true)}, {Name: "charge", Seq: store.EncodeSeq(3, true)}, {Name: "ship", Seq: store.EncodeSeq(4, true)}}
			if test.renewal != nil {
				rows = append(rows, store.Step{Kind: store.KindRenewal, Output: test.renewal.Encode()})
			}
			r.addRows(rows)
			if got := r.missingCallNames(""); !slices.Equal(got, test.want) {
				t.Errorf("missing are %q, want %q", got, test.want)
			}
		})
	}
}
