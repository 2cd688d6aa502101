package repair

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

func (h *history) row(name string) *store.Step {
	i := slices.IndexFunc(h.History, func(s store.Step) bool { return s.Name == naming.ParseDisplay(name) })
	return &h.History[i]
}

// live makes the run one that was stopped for its repair.
func (h *history) live() *history {
	h.Run.Status, h.Run.Control, h.Run.Error, h.Run.EndedAt = store.Paused, store.PausedItself, nil, time.Time{}
	return h
}

// done returns the result of a repair, which must be possible.
func done(t *testing.T) func(*Result, error) *Result {
	return func(r *Result, err error) *Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// writtenCalls returns the calls that the next generation writes, without the renewal.
func writtenCalls(r *Result) (names []string) {
	for i := range r.Repair.NewSteps {
		if s := &r.Repair.NewSteps[i]; s.Kind != store.KindKeyRenewal {
			names = append(names, naming.Display(s.Name)+" "+s.Status.String()+" "+string(s.Output))
		}
	}
	return names
}

func laterRequest() *Request { return &Request{Now: start.Add(time.Hour), Nonce: 9} }

func TestAnOverrideDropsWhatBeganLater(t *testing.T) {
	h := failedRun(t, "ship", "step reserve completed", "step quote completed", "step charge completed", "receive ok completed", "step ship failed")
	h.row("quote").Output = []byte(`10`)
	r := done(t)(PlanOverride(&h.RunToRepair, laterRequest(), "quote", []byte(`20`)))
	want(t, "kept", shown(r.Repair.KeptSteps), "reserve")
	want(t, "written", writtenCalls(r), "quote completed 20")
	want(t, "dropped", r.Detail.Dropped, "charge", "ok", "ship")
	want(t, "renewed", r.Detail.Renewed, "charge")
	want(t, "corrected", r.Detail.Corrected, "quote")
	want(t, "released", r.Repair.ReleasedReceivers, "ok")
	if seq := r.Repair.NewSteps[1].Seq; r.Repair.NewSteps[1].Name != "quote" || seq != store.EncodeSeq(2, true) || r.Repair.Progress != 3 {
		t.Errorf("the step has the place %d in the history, and the progress is %d", seq, r.Repair.Progress)
	}
	q := laterRequest()
	q.FromEnd = true
	r = done(t)(PlanOverride(&h.RunToRepair, q, "ok", []byte(`null`)))
	want(t, "kept by FromEnd", shown(r.Repair.KeptSteps), "charge", "quote", "reserve", "ship")
	want(t, "written by FromEnd", writtenCalls(r), "ok completed null")
	want(t, "released by FromEnd", r.Repair.ReleasedReceivers)
}

// Calls behind the first one that is dropped or changed need not be made any more. That call itself need be made.
func TestTheFirstChange(t *testing.T) {
	h := failedRun(t, "no", "step a completed", "step b completed", "child kid failed", "step c completed", "step no failed", "step d completed")
	h.child("kid", store.Failed, "")
	position := func(r *Result) int32 { return r.Repair.FirstChangedSeq >> 1 }
	if got := position(h.retry(Request{})); got != 5 {
		t.Errorf("a retry changes from %d", got)
	}
	if got := h.retry(Request{FromEnd: true}).Repair.FirstChangedSeq; got != 0 {
		t.Errorf("a retry that keeps all changes from %d", got)
	}
	if got := position(done(t)(PlanRerun(&h.RunToRepair, laterRequest(), "b"))); got != 2 {
		t.Errorf("a rerun changes from %d", got)
	}
	q := laterRequest()
	q.FromEnd = true
	r := done(t)(PlanFork(&h.RunToRepair, q, map[string][]byte{"b": []byte(`1`), "no": []byte(`2`)}))
	if got := position(r); got != 2 {
		t.Errorf("a fork with values changes from %d", got)
	}
	for _, s := range calls(r.Repair.NewSteps) {
		if s.WasMadeByScopeGoroutine() != (s.Name == "b") {
			t.Errorf("%q must be called: %t", s.Name, s.WasMadeByScopeGoroutine())
		}
	}
	h.Run.Error = (&record.Failure{Message: "no", Step: "kid"}).Encode()
	if got := position(h.retry(Request{})); got != 3 {
		t.Errorf("a retry of a child changes from %d", got)
	}
}

// made is a result with its error, as one value.
type made struct {
	r   *Result
	err error
}

func TestWhatAnOverrideASkipAndARerunCannotMean(t *testing.T) {
	h := failedRun(t, "no", "step text completed", "step no failed", "choice which completed", "map all completed", "sleep nap completed", "step flag completed")
	h.row("text").Output, h.row("flag").Output = []byte(`"a"`), []byte(`true`)
	h.row("nap").NextAt = start
	q := laterRequest()
	override := func(step, value string) made { return of(PlanOverride(&h.RunToRepair, q, step, []byte(value))) }
	skip := func(step, value string) made { return of(PlanSkip(&h.RunToRepair, q, step, []byte(value))) }
	rerun := func(step string) made { return of(PlanRerun(&h.RunToRepair, q, step)) }
	for what, c := range map[string]struct {
		made
		want error
	}{
		"an override with another type":   {override("text", `{}`), ErrValueType},
		"an override of a boolean by a 0": {override("flag", `0`), ErrValueType},
		"an override of a failed step":    {override("no", `1`), &StateError{`its step "no" has failed: use Skip`}},
		"an override of nothing":          {override("none", `1`), ErrNoStep},
		"an override of a choice":         {override("which", `{}`), ErrNoStep},
		"a skip of a step that succeeded": {skip("text", `"b"`), &StateError{`its step "text" has succeeded: use Override`}},
		"a skip of a sleep that is over":  {skip("nap", `null`), &StateError{`its sleep "nap" is over`}},
		"a skip of nothing":               {skip("none", `1`), ErrNoStep},
		"a rerun of nothing":              {rerun("none"), ErrNoStep},
		"a rerun of a choice":             {rerun("which"), ErrNoStep},
		"a rerun of a map":                {rerun("all"), ErrNoStep},
	} {
		var refused, wanted *StateError
		if errors.As(c.want, &wanted) {
			if !errors.As(c.err, &refused) || *refused != *wanted {
				t.Errorf("%s: %v, want %v", what, c.err, c.want)
			}
		} else if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", what, c.err, c.want)
		}
	}
	for _, value := range []string{`"b"`, `null`} {
		if err := override("text", value).err; err != nil {
			t.Errorf("an override of a text by %s: %v", value, err)
		}
	}
	if err := override("flag", `false`).err; err != nil {
		t.Errorf("an override of true by false: %v", err)
	}
}

func of(r *Result, err error) made { return made{r, err} }

func TestASkipGivesAValueAndKeepsTheRest(t *testing.T) {
	h := failedRun(t, "charge", "step reserve completed", "step charge failed", "step notify completed")
	h.row("charge").Failures = []byte(`{}`)
	r := done(t)(PlanSkip(&h.RunToRepair, laterRequest(), "charge", []byte(`{"id":1}`)))
	want(t, "kept", shown(r.Repair.KeptSteps), "notify", "reserve")
	want(t, "written", writtenCalls(r), `charge completed {"id":1}`)
	want(t, "dropped", r.Detail.Dropped)
	if w := r.Repair.NewSteps[0]; w.Error != nil || w.Failures != nil || !w.NextAt.IsZero() || w.EndedAt.IsZero() {
		t.Errorf("the step is %+v", w)
	}
}

func TestASkipOfAChildCancelsIt(t *testing.T) {
	h := failedRun(t, "", "child kid started", "child free started", "receive go started").live()
	kid, free := h.child("kid", store.Running, ""), h.child("free", store.Running, "")
	free.Detached = true
	h.row("kid").Failures = []byte(`{"workflow":"w"}`)
	r := done(t)(PlanSkip(&h.RunToRepair, laterRequest(), "kid", []byte(`1`)))
	if !slices.Equal(r.Repair.DetachedChildren, []uuid.UUID{kid.UUID}) || !slices.Equal(r.ChildrenToCancel, []uuid.UUID{kid.UUID}) || string(calls(r.Repair.NewSteps)[0].Failures) == "" {
		t.Errorf("%v stay behind, %v are cancelled, written %+v", r.Repair.DetachedChildren, r.ChildrenToCancel, r.Repair.NewSteps)
	}
	r = done(t)(PlanSkip(&h.RunToRepair, laterRequest(), "free", []byte(`1`)))
	if !slices.Equal(r.Repair.DetachedChildren, []uuid.UUID{free.UUID}) || len(r.ChildrenToCancel) != 0 {
		t.Errorf("%v stay behind, %v are cancelled", r.Repair.DetachedChildren, r.ChildrenToCancel)
	}
	kid.Status, h.row("kid").Status = store.Completed, store.StepCompleted
	h.row("kid").Output = []byte(`1`)
	r = done(t)(PlanOverride(&h.RunToRepair, laterRequest(), "kid", []byte(`2`)))
	if slices.Contains(r.Repair.DetachedChildren, kid.UUID) {
		t.Errorf("a child that has ended stays behind")
	}
	want(t, "written", writtenCalls(r), "kid completed 2")
}

func TestASkippedSleepIsOver(t *testing.T) {
	h := failedRun(t, "", "sleep nap completed").live()
	h.row("nap").NextAt = start.Add(48 * time.Hour)
	if _, err := PlanSkip(&h.RunToRepair, laterRequest(), "nap", []byte(`1`)); !errors.Is(err, ErrValueType) {
		t.Errorf("with a value: %v", err)
	}
	r := done(t)(PlanSkip(&h.RunToRepair, laterRequest(), "nap", []byte(`null`)))
	if w := calls(r.Repair.NewSteps); len(w) != 1 || !w[0].NextAt.Equal(start.Add(time.Hour)) || w[0].Kind != store.KindSleep {
		t.Errorf("written: %+v", w)
	}
}

func TestARerunKeepsAllOtherCalls(t *testing.T) {
	h := failedRun(t, "no", "step a completed", "step b completed", "step no failed", "step c completed")
	r := done(t)(PlanRerun(&h.RunToRepair, laterRequest(), "b"))
	want(t, "kept", shown(r.Repair.KeptSteps), "a", "c", "no")
	want(t, "renewed", r.Detail.Renewed, "b")
	r = done(t)(PlanRerun(&h.RunToRepair, laterRequest(), "no"))
	want(t, "kept", shown(r.Repair.KeptSteps), "a", "b", "c")
	want(t, "renewed after a failure", r.Detail.Renewed)
}

func TestALiveRunStaysAsItWasStopped(t *testing.T) {
	h := failedRun(t, "", "step a completed", "step b started").live()
	h.Run.Control |= store.PausedByAncestor
	r := done(t)(PlanRerun(&h.RunToRepair, laterRequest(), "a"))
	if p := r.Repair; p.Status != store.Paused || p.Control != h.Run.Control || !p.WakeAt.IsZero() || p.StateBefore.Status != store.Paused {
		t.Errorf("the repair is %+v", p)
	}
	h.call("failure " + naming.Display(store.EndRecordName) + " failed")
	var refused *StateError
	if _, err := PlanRerun(&h.RunToRepair, laterRequest(), "a"); !errors.As(err, &refused) {
		t.Errorf("while it compensates: %v", err)
	}
}

// The error for a call that has no value to set says what to do instead, and does not send the caller from Skip to Override and back.
func TestWhatHasNoValueCannotBeSet(t *testing.T) {
	for call, want := range map[string]string{
		"graph left/failure failed":  `"left/failure" records that the node "left" failed outside its calls, so there is no call whose value could be set: correct the code of the node, and use Retry or Rerun, which execute the node again`,
		"graph left/skip completed":  `"left/skip" records that the node "left" was skipped or has no items, so there is no call whose value could be set: fork the run from "left", or set the value of a step that the node needs`,
		"graph left/held completed":  `"left/held" records that the node "left" was skipped or has no items, so there is no call`,
		"graph shape/1 completed":    `"shape/1" records how the code continues the run, and has no value: name a step`,
		"map left/each completed":    `"left/each" is a map, whose value consists of the values of its items: set the value of one of its items, such as "left/each/0"`,
		"choice any/first completed": `"any/first" is a choice, whose value cannot be set: fork the run from it, or set the value of a step`,
	} {
		h := failedRun(t, "", call, "step left/each/0 failed")
		for _, plan := range []func(*RunToRepair, *Request, string, []byte) (*Result, error){PlanOverride, PlanSkip} {
			_, err := plan(&h.RunToRepair, laterRequest(), h.History[0].Name, []byte("1"))
			if !errors.Is(err, ErrNoStep) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", call, err, want)
			}
		}
	}
}
