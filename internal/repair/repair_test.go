package repair

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// history builds a run that has failed. Each call is "kind name status", in the order in which the calls began; names
// are as people see them.
type history struct {
	t *testing.T
	RunToRepair
}

func failedRun(t *testing.T, failedStep string, calls ...string) *history {
	failure := &record.Failure{Message: "no", Step: failedStep}
	h := &history{t: t, RunToRepair: RunToRepair{Generation: 1, Timeout: time.Hour, Run: &store.Run{
		UUID: store.NewUUIDAt(7, start), Status: store.Failed, Epoch: store.Epoch{Count: 3, Nonce: 1}, Error: failure.Encode(), CreatedAt: start,
		Deadline: start.Add(time.Hour), EndedAt: start.Add(time.Minute),
	}}}
	for _, c := range calls {
		h.call(c)
	}
	return h
}

var kinds = map[string]store.StepKind{
	"step": store.KindStep, "tx": store.KindTx, "child": store.KindChild, "choice": store.KindChoice, "receive": store.KindReceive,
	"compensation": store.KindCompensation, "map": store.KindMap, "failure": store.KindRunEnd, "sleep": store.KindSleep, "graph": store.KindGraph,
}

var statuses = map[string]store.StepStatus{"started": store.StepStarted, "backoff": store.StepBackoff, "completed": store.StepCompleted, "failed": store.StepFailed}

func (h *history) call(text string) *store.Step {
	f := strings.Split(text, " ")
	kind, known := kinds[f[0]]
	status, ok := statuses[f[2]]
	if !known || !ok {
		h.t.Fatalf("there is no call %q", text)
	}
	seq := int32(len(h.History) + 1)
	h.History = append(h.History, store.Step{
		Run: h.Run.UUID, Name: naming.ParseDisplay(f[1]), Kind: kind, Status: status, Attempt: 1, Seq: store.EncodeSeq(seq, true), StartedAt: start.Add(time.Duration(seq) * time.Second),
	})
	row := &h.History[len(h.History)-1]
	if status >= store.StepCompleted {
		row.EndedAt = row.StartedAt.Add(time.Millisecond)
	}
	return row
}

// child adds the child of a call, which has the status. cancel is the reason of its cancel, if it is not empty.
func (h *history) child(name string, status store.Status, cancel string) *store.Run {
	i := slices.IndexFunc(h.History, func(s store.Step) bool { return s.Name == naming.ParseDisplay(name) })
	row := &h.History[i]
	c := &store.Run{UUID: record.ChildUUID(h.Run.UUID, row), Name: row.Name, Status: status, Parent: uuid.NullUUID{UUID: h.Run.UUID, Valid: true}}
	if cancel != "" {
		c.Control, c.CancelReason = store.CancelRequested, cancel
	}
	if row.Status == store.StepFailed {
		f := record.Failure{Message: "no", Run: c.UUID.String()}
		row.Error = f.Encode()
	}
	h.Children = append(h.Children, c)
	return c
}

func (h *history) retry(q Request) *Result {
	h.t.Helper()
	q.Now, q.Nonce = start.Add(time.Hour), 9
	r, err := PlanRetry(&h.RunToRepair, &q)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func shown(names []string) (all []string) {
	for _, n := range names {
		all = append(all, naming.Display(n))
	}
	return all
}

// calls returns the checkpoints that are calls.
func calls(rows []store.Step) (all []store.Step) {
	for _, row := range rows {
		if !isInternalRecord(&row) {
			all = append(all, row)
		}
	}
	return all
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestARetryDropsTheFailureThatTheRunNames(t *testing.T) {
	h := failedRun(t, "charge", "step reserve completed", "step handled failed", "step charge failed", "step after completed")
	r := h.retry(Request{})
	want(t, "kept", shown(r.Repair.KeptSteps), "after", "handled", "reserve")
	want(t, "dropped", r.Detail.Dropped, "charge")
	want(t, "renewed", r.Detail.Renewed) // the first attempt may have reached the bank
	if p := r.Repair; p.CheckpointCount != 4 || p.Progress != 4 || p.SupersededNumber != 1 || p.Status != store.Pending || p.Epoch != (store.Epoch{Count: 4, Nonce: 9}) ||
		!p.WakeAt.Equal(start.Add(time.Hour)) || !p.Deadline.Equal(start.Add(2*time.Hour)) || len(calls(p.NewSteps)) != 0 {
		t.Errorf("the repair is %+v", p)
	}
}

func TestARetryFromAStepRenewsWhatHadCompleted(t *testing.T) {
	h := failedRun(t, "charge", "step reserve completed", "sleep nap completed", "step quote completed", "step charge failed", "step late started")
	r := h.retry(Request{From: "quote"})
	want(t, "kept", shown(r.Repair.KeptSteps), "nap", "reserve")
	want(t, "dropped", r.Detail.Dropped, "quote", "charge", "late")
	want(t, "renewed", r.Detail.Renewed, "quote")
	if len(r.Repair.NewSteps) != 1 || r.Repair.NewSteps[0].Kind != store.KindKeyRenewal {
		t.Fatalf("it writes %+v", r.Repair.NewSteps)
	}
	since, err := record.DecodeRenewal(r.Repair.NewSteps[0].Output)
	if err != nil || len(since.Since) != 1 || since.Since["quote"] != 2 {
		t.Errorf("the renewal is %+v, %v", since, err)
	}
	// The next repair keeps the renewal, and adds to it.
	h.Generation, h.History = 2, append(h.History, r.Repair.NewSteps[0])
	r = h.retry(Request{From: "reserve"})
	since, err = record.DecodeRenewal(r.Repair.NewSteps[0].Output)
	if err != nil || since.Since["quote"] != 3 || since.Since["reserve"] != 3 || len(r.Repair.NewSteps) != 1 {
		t.Errorf("after a second repair: %+v, %v", since, err)
	}
	r = h.retry(Request{})
	since, err = record.DecodeRenewal(r.Repair.NewSteps[0].Output)
	if err != nil || since.Since["quote"] != 2 || len(since.Since) != 1 {
		t.Errorf("after a repair that renews nothing: %+v, %v", since, err)
	}
}

// A retry of a generation that began by continuing as new keeps that all its steps have keys of their own.
func TestARetryOfAContinuedRun(t *testing.T) {
	h := failedRun(t, "charge", "receive order completed", "step quote completed", "step charge failed")
	continued := record.Renewal{Generation: 4, All: 4, FirstInput: []byte("hash")}
	h.History = append(h.History, continued.NewStep(h.Run.UUID, h.Run.Epoch, start))
	h.Generation = 4
	r := h.retry(Request{From: "order"})
	want(t, "released", r.Repair.ReleasedReceivers, naming.Separator+"#4"+naming.Separator+"order")
	since, err := record.FindRenewal(r.Repair.NewSteps)
	if err != nil || since.Generation != 5 || since.All != 4 || string(since.FirstInput) != "hash" || since.KeyGeneration("quote") != "#5" || since.KeyGeneration("charge") != "#4" ||
		since.Receiver("order") != naming.Separator+"#4"+naming.Separator+"order" {
		t.Errorf("the renewal is %+v, %v", since, err)
	}
}

func TestARetryFromTheEndKeepsAllCalls(t *testing.T) {
	h := failedRun(t, "", "step reserve completed", "step charge failed")
	want(t, "kept", shown(h.retry(Request{FromEnd: true}).Repair.KeptSteps), "charge", "reserve")
}

// A run that failed or expired before its first call, as one that did not begin by its StartBy, is retried from its beginning.
func TestARetryOfARunWithoutCallsNeedsNoFrom(t *testing.T) {
	h := failedRun(t, "")
	end := h.call("failure " + naming.Display(store.EndRecordName) + " failed")
	ending := record.Ending{Status: "expired"}
	end.Output = ending.Encode()
	if r, err := PlanRetry(&h.RunToRepair, &Request{}); err != nil || len(r.Repair.KeptSteps) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestWhatARetryCannotMean(t *testing.T) {
	for _, c := range []struct {
		what string
		h    *history
		q    Request
		want error
		text string
	}{
		{"the failure names no step", failedRun(t, "", "step a completed"), Request{}, ErrFromRequired, "names no step"},
		{"the step is not recorded", failedRun(t, "b", "step a completed"), Request{}, ErrFromRequired, `"b"`},
		{"the step had completed", failedRun(t, "a", "step a completed"), Request{}, ErrFromRequired, `"a"`},
		{"no such step", failedRun(t, "a", "step a failed"), Request{From: "b"}, ErrNoStep, `"b"`},
		{"from a compensation", failedRun(t, "a", "step a failed", "compensation undo completed"), Request{From: "undo"}, ErrNoStep, `"undo"`},
		{"compensated, and nobody knows what", failedRun(t, "a", "step a failed", "compensation undo completed"), Request{}, ErrFromRequired, `"undo"`},
	} {
		if _, err := PlanRetry(&c.h.RunToRepair, &c.q); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
	}
}

func TestUndoneStepsAreExecutedAnewWithNewKeys(t *testing.T) {
	h := failedRun(t, "ship", "step reserve completed", "step charge completed", "step ship failed")
	end := h.call("failure " + naming.Display(store.EndRecordName) + " failed")
	ending := record.Ending{Status: "failed", Undoes: map[string][]string{"refund": {"charge"}}}
	end.Output = ending.Encode()
	h.call("compensation refund completed")
	r := h.retry(Request{})
	want(t, "kept", shown(r.Repair.KeptSteps), "reserve")
	want(t, "dropped", r.Detail.Dropped, "charge", "ship", "refund")
	want(t, "renewed", r.Detail.Renewed, "charge", "refund")
	h.History[4].Status = store.StepFailed
	if _, err := PlanRetry(&h.RunToRepair, &Request{}); !errors.Is(err, ErrFromRequired) {
		t.Errorf("with a compensation that failed: %v", err)
	}
	r = h.retry(Request{From: "ship"})
	want(t, "kept by From", shown(r.Repair.KeptSteps), "charge", "reserve")
	want(t, "renewed by From", r.Detail.Renewed)
}

func TestAFailedChildIsRetriedAndItsCallWaitsAgain(t *testing.T) {
	h := failedRun(t, "kid", "step a completed", "child kid failed")
	c := h.child("kid", store.Failed, "")
	r := h.retry(Request{})
	if len(r.ChildrenToRetry) != 1 || r.ChildrenToRetry[0] != c.UUID || len(r.Repair.DetachedChildren) != 0 || len(r.ChildrenToCancel) != 0 {
		t.Fatalf("the result is %+v", r)
	}
	want(t, "kept", shown(r.Repair.KeptSteps), "a")
	w := calls(r.Repair.NewSteps)
	var id string
	if len(w) != 1 || w[0].Name != "kid" || w[0].Status != store.StepStarted || json.Unmarshal(w[0].Output, &id) != nil || id != c.UUID.String() || w[0].Error != nil || !w[0].EndedAt.IsZero() {
		t.Errorf("the call is %+v", w)
	}
	h.Children[0].Status = store.Cancelled // a cancelled child is not retried: the call starts another one
	r = h.retry(Request{})
	if len(r.ChildrenToRetry) > 0 || len(calls(r.Repair.NewSteps)) != 0 || !slices.Equal(r.Repair.DetachedChildren, []uuid.UUID{c.UUID}) {
		t.Errorf("with a cancelled child: %+v", r)
	}
}

func TestChildrenOfDroppedCallsStayBehind(t *testing.T) {
	h := failedRun(t, "charge", "child done completed", "child ended started", "child chosen started", "child live started", "step charge failed", "child late started", "child detached started", "child over completed")
	done, ended := h.child("done", store.Completed, ""), h.child("ended", store.Cancelled, ParentEndedReason)
	h.child("chosen", store.Cancelled, "an operator") // its parent finds out
	h.child("live", store.Running, "")
	late, detached, over := h.child("late", store.Waiting, ""), h.child("detached", store.Running, ""), h.child("over", store.Completed, "")
	detached.Detached = true
	r := h.retry(Request{From: "charge"})
	want(t, "kept", shown(r.Repair.KeptSteps), "chosen", "done", "live")
	behind := []uuid.UUID{ended.UUID, late.UUID, detached.UUID, over.UUID}
	slices.SortFunc(behind, store.CompareUUIDsByShard)
	if !slices.Equal(r.Repair.DetachedChildren, behind) {
		t.Errorf("%v stay behind, want %v", r.Repair.DetachedChildren, behind)
	}
	if !slices.Equal(r.ChildrenToCancel, []uuid.UUID{late.UUID}) {
		t.Errorf("%v are cancelled, want %v", r.ChildrenToCancel, late.UUID)
	}
	_ = done
}

func TestAChoiceThatTheFailureDecidedIsMadeAgain(t *testing.T) {
	h := failedRun(t, "left/charge", "step left/charge failed", "step right/slow completed", "step right/cut failed", "child right/kid started", "choice both completed", "choice other completed")
	both := record.Choice{Failed: []int{0}, Of: []string{"left", "right"}, Ended: []string{"right"}}
	other := record.Choice{Won: []int{0}, Wanted: 1, Of: []string{"x", "y"}}
	h.History[4].Output, _ = both.Encode()
	h.History[5].Output, _ = other.Encode()
	h.History[2].EndedAt = h.History[4].EndedAt // its context ended with the branch
	kid := h.child("right/kid", store.Cancelled, "the branch has ended")
	r := h.retry(Request{})
	want(t, "kept", shown(r.Repair.KeptSteps), "other", "right/slow")
	if !slices.Equal(r.Repair.DetachedChildren, []uuid.UUID{kid.UUID}) {
		t.Errorf("%v stay behind", r.Repair.DetachedChildren)
	}
}

func TestSignalsOfDroppedReceivesAreReleased(t *testing.T) {
	h := failedRun(t, "charge", "receive before completed", "step charge failed", "receive after completed", "receive waiting started")
	r := h.retry(Request{From: "charge"})
	want(t, "released", r.Repair.ReleasedReceivers, "after")
}

func TestARunBelowAPausedOneIsPaused(t *testing.T) {
	r := failedRun(t, "a", "step a failed").retry(Request{HasPausedAncestor: true})
	if p := r.Repair; p.Status != store.Paused || p.Control != store.PausedByAncestor || !p.WakeAt.IsZero() {
		t.Errorf("the repair is %+v", p)
	}
}

// A step that is executed again gets a new key, so the compensation of its first execution, which has failed and may have had an
// effect, does not share its key with that of the second one.
func TestACompensationGetsANewKeyWithTheStepThatItUndoes(t *testing.T) {
	h := failedRun(t, "ship", "step charge completed", "step reserve completed", "step ship failed", "compensation release failed", "compensation refund failed", "compensation unknown failed")
	h.History = append(h.History, store.Step{
		Run: h.Run.UUID, Name: store.EndRecordName, Kind: store.KindRunEnd, Status: store.StepFailed,
		Output: (&record.Ending{Status: "failed", Undoes: map[string][]string{"refund": {"charge"}, "release": {"reserve", "ship"}}}).Encode(),
	})
	r := h.retry(Request{From: "reserve"})
	want(t, "renewed from reserve on", r.Detail.Renewed, "release", "reserve")
	r = h.retry(Request{From: "charge"})
	want(t, "renewed from charge on", r.Detail.Renewed, "charge", "refund", "release", "reserve")
}

// Each retry gives the run its whole timeout once more, from when it is due.
func TestRetriesGiveTheSameTimeout(t *testing.T) {
	h := failedRun(t, "charge", "step charge failed")
	h.Timeout = time.Minute
	now := start.Add(100 * time.Hour)
	for _, q := range []Request{{Now: now}, {Now: now, Due: now.Add(time.Hour)}} {
		r, err := PlanRetry(&h.RunToRepair, &q)
		if err != nil {
			t.Fatal(err)
		}
		if want := q.due().Add(time.Minute); !r.Repair.Deadline.Equal(want) || !r.Repair.WakeAt.Equal(q.due()) {
			t.Errorf("due at %v, the deadline is %v, want %v", r.Repair.WakeAt, r.Repair.Deadline, want)
		}
	}
}

// A compensation undoes all calls in the scope that its Undoes names.
func TestUndoesOfAScope(t *testing.T) {
	h := failedRun(t, "ship", "map charge completed", "step charge/0 completed", "step charge/1 failed", "step left/hold completed", "step leftover completed", "step ship failed", "compensation refund completed")
	h.History = append(h.History, store.Step{
		Run: h.Run.UUID, Name: store.EndRecordName, Kind: store.KindRunEnd, Status: store.StepFailed,
		Output: (&record.Ending{Status: "failed", Undoes: map[string][]string{"refund": {"charge", "left", "never executed"}}}).Encode(),
	})
	r := h.retry(Request{})
	want(t, "kept", shown(r.Repair.KeptSteps), "leftover")
	want(t, "renewed", r.Detail.Renewed, "charge/0", "charge/1", "left/hold", "refund")
	renewal, err := record.FindRenewal(r.Repair.NewSteps)
	if err != nil || renewal.KeyGeneration("charge/2") != "#2" || renewal.KeyGeneration("never executed") != "#2" || renewal.KeyGeneration("leftover") != "" {
		t.Errorf("the renewal is %+v, %v", renewal, err)
	}
}

// A wait that is dropped after its escalation escalates again with another key. Its token stays.
func TestADroppedWaitEscalatesAgain(t *testing.T) {
	h := failedRun(t, "charge", "step charge failed", "receive answered completed", "receive escalated started", "receive waiting started")
	for i := range h.History {
		if row := &h.History[i]; row.Name == "answered" || row.Name == "escalated" {
			row.Attempt = 2
		}
	}
	r := h.retry(Request{From: "charge"})
	want(t, "renewed", r.Detail.Renewed, "answered", "escalated")
	renewal, err := record.FindRenewal(r.Repair.NewSteps)
	if err != nil || renewal.KeyGeneration("escalated") != "#2" || renewal.KeyGeneration("waiting") != "" || renewal.CallbackSuffix() != "" {
		t.Errorf("the renewal is %+v, %v", renewal, err)
	}
}

// The renewal has the names of dropped calls that keep their keys, and keeps them as long as the run is repaired.
func TestTheNamesOfKeptKeys(t *testing.T) {
	h := failedRun(t, "pay", "map many completed", "step many/0 failed", "step many/1 failed", "step pay failed", "child kid failed", "step left/other started", "step done completed", "receive paid failed")
	for _, from := range []string{"many", ""} {
		r := h.retry(Request{From: naming.ParseDisplay(from), FromEnd: from == ""})
		h.History = append(calls(r.Repair.NewSteps), *renewalRow(r))
		renewal, err := record.FindRenewal(h.History)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "same keys", renewal.SameKey, "left/other", "many", "paid", "pay")
	}
}

func renewalRow(r *Result) *store.Step {
	return &r.Repair.NewSteps[slices.IndexFunc(r.Repair.NewSteps, func(s store.Step) bool { return s.Kind == store.KindKeyRenewal })]
}

// The started marker of an at-most-once step is kept, whatever drops it. Whether one that cannot be decoded is such a marker is not known.
func TestAnUnknownOutcomeIsKept(t *testing.T) {
	open := func(once bool) []byte {
		return record.Failures{Open: &record.FailedAttempt{Attempt: 1, AtMostOnce: once}}.Encode(false)
	}
	h := failedRun(t, "", "step a completed", "step once started", "step again started", "step unread started", "step backoff backoff")
	h.row("once").Failures, h.row("again").Failures, h.row("backoff").Failures = open(true), open(false), open(true)
	h.row("unread").Failures = []byte{payload.Mark}
	for _, from := range []string{"a", "once"} {
		r := h.retry(Request{From: from})
		if k := shown(r.Repair.KeptSteps); !slices.Contains(k, "once") || !slices.Contains(k, "unread") || slices.Contains(k, "again") || slices.Contains(k, "backoff") {
			t.Errorf("from %q: kept %q", from, k)
		}
	}
}
