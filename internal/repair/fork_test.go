package repair

import (
	"errors"
	"testing"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

func TestAForkBeginsAtAStepWithOtherValues(t *testing.T) {
	h := failedRun(t, "", "step a completed", "step b completed", "step c completed", "receive go started").live()
	q := laterRequest()
	q.From = "b"
	r := done(t)(PlanFork(&h.RunToRepair, q, map[string][]byte{"a": []byte(`1`), "b": []byte(`2`)}))
	want(t, "kept", shown(r.Repair.KeptSteps))
	want(t, "written", writtenCalls(r), "a completed 1", "b completed 2")
	want(t, "dropped", r.Detail.Dropped, "c", "go")
	want(t, "renewed", r.Detail.Renewed, "c")
	for what, c := range map[string]struct {
		q      Request
		values map[string][]byte
		want   error
	}{
		"without From":        {Request{}, nil, ErrFromRequired},
		"from no step":        {Request{From: "x"}, nil, ErrNoStep},
		"a value for no step": {Request{FromEnd: true}, map[string][]byte{"x": nil}, ErrNoStep},
	} {
		if _, err := PlanFork(&h.RunToRepair, &c.q, c.values); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if _, _, err := CopyHistory(&h.RunToRepair, &c.q, c.values); !errors.Is(err, c.want) {
			t.Errorf("a copy %s: %v, want %v", what, err, c.want)
		}
	}
}

func TestACopyHasOnlyOutcomes(t *testing.T) {
	h := failedRun(t, "no", "step a completed", "sleep nap completed", "step no failed", "child kid completed", "child live started", "step flaky backoff", "receive go started",
		"failure "+naming.Display(store.EndRecordName)+" failed", "compensation undo completed")
	h.Run.Status = store.Cancelled
	steps, d, err := CopyHistory(&h.RunToRepair, &Request{FromEnd: true, Now: start.Add(time.Hour)}, map[string][]byte{"go": []byte(`"x"`)})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range steps {
		text := naming.Display(s.Name) + " " + s.Status.String()
		if s.WasMadeByScopeGoroutine() {
			text += " must be called"
		}
		names = append(names, text)
		if s.Seq == 0 && s.Kind != store.KindKeyRenewal {
			t.Errorf("step %+v", s)
		}
	}
	want(t, "copied", names, "/renewal completed", "a completed must be called", "go completed", "kid completed must be called", "nap completed must be called", "no failed must be called")
	want(t, "not copied", d.Dropped, "live", "flaky", "undo")
	want(t, "corrected", d.Corrected, "go")
	if d.Kept != 4 {
		t.Errorf("%d are kept", d.Kept)
	}
}
