package durablecli_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
)

// runOn executes a command on the engine in a pipe, and fails the test if its exit code is another.
func runOn(t *testing.T, e *durable.Engine, code int, stdin string, args ...string) outcome {
	t.Helper()
	got := commandOn(t, e, stdin, args...)
	if got.code != code {
		t.Fatalf("durable %q exits with %d, not %d\n%s%s", args, got.code, code, got.out, got.err)
	}
	return got
}

// status returns the status of a run.
func status(t *testing.T, e *durable.Engine, id string) durable.Status {
	t.Helper()
	run, err := e.Get(within(t), id)
	if err != nil {
		t.Fatal(err)
	}
	return run.Status
}

// A run is started, waited for, signalled and completed, with the exit code of its end.
func TestStartAndSignal(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, _ := p.engine(t)
		if got := runOn(t, e, 0, "", "start", "order", `"book"`, "--id", "order-1", "--tag", "team.owner=pay"); got.out != "order-1\n" {
			t.Errorf("start writes %q", got.out)
		}
		if got := runOn(t, e, 0, "", "get", "order-1", "--wait", "-o", "json").out; !strings.Contains(got, `"output": "paid book"`) || !strings.Contains(got, `"team.owner": "pay"`) {
			t.Errorf("the run is %s", got)
		}
		if got := runOn(t, e, durablecli.ExitWorkflowFailed, `"declined"`, "start", "order", "-", "--wait"); !strings.Contains(got.out, "card declined") || !strings.Contains(got.err, "did not complete") {
			t.Errorf("a failed run is shown as %s%s", got.out, got.err)
		}
		file := filepath.Join(t.TempDir(), "input.json")
		if err := os.WriteFile(file, []byte(" \"budget\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		runOn(t, e, 0, "", "start", "approval", "@"+file, "--id", "approval-1", "--queue", "desk", "--priority", "1", "--delay", "0s", "--timeout", "1d")
		runOn(t, e, 0, "", "signal", "approval-1", "approve", `"yes"`, "--signal-key", "k1")
		if got := runOn(t, e, 0, "", "get", "approval-1", "--wait").out; !strings.Contains(got, `"yes"`) || !strings.Contains(got, "desk") {
			t.Errorf("the run is %s", got)
		}
		runOn(t, e, durablecli.ExitError, "", "signal", "approval-1", "approve") // it has ended
		runOn(t, e, durablecli.ExitError, "", "start", "order", `"other"`, "--id", "order-1")
		for _, args := range [][]string{
			{"start", "order", "book"},
			{"start", "order", "@" + file + ".missing"},
			{"start", "order", "1", "--tag", "x"},
			{"start", "order", "--weight", "2"},
			{"signal", "approval-1", "approve", "{"},
			{"start", "order", "1", "--priority", "9"},
			{"start"},
			{"signal", "approval-1"},
			{"complete"},
		} {
			runOn(t, e, durablecli.ExitUsage, "", args...)
		}
		runOn(t, e, durablecli.ExitNotFound, "", "signal", "missing", "approve")
		runOn(t, e, durablecli.ExitUsage, "", "complete", "forged")
	})
}

// awaiter waits for what Engine.Complete delivers, and hands out its token.
func awaiter(tokens chan<- string) *durable.Workflow[string, string] {
	return durable.Define("awaiter", func(c *durable.Ctx, _ string) (string, error) {
		a := c.Callback[string]("decision")
		select {
		case tokens <- a.Token():
		default:
		}
		return a.Wait()
	})
}

func TestComplete(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		tokens := make(chan string, 1)
		e, _ := p.engine(t, awaiter(tokens))
		runOn(t, e, 0, "", "start", "awaiter", `""`, "--id", "awaiter-1")
		runOn(t, e, 0, "", "complete", <-tokens, `"granted"`)
		if got := runOn(t, e, 0, "", "get", "awaiter-1", "--wait").out; !strings.Contains(got, `"granted"`) {
			t.Errorf("the run is %s", got)
		}
	})
}

// Runs are controlled by IDs, by IDs from standard input, and by filters; who did it and why is recorded.
func TestControl(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e := p.client(t)
		for _, id := range []string{"a-1", "a-2", "a-3", "b-1"} {
			start(t, e, order, id, "book")
		}
		golden(t, "control", steady(runOn(t, e, 0, "", "pause", "a-1", "a-2", "--reason", "audit", "--actor", "ann").out))
		run, err := e.Get(within(t), "a-1")
		if err != nil || run.Status != durable.StatusPaused || run.Reason != "audit" || run.PausedBy != "ann" {
			t.Errorf("the paused run is %+v, %v", run, err)
		}
		runOn(t, e, 0, "a-1\n\na-2\n", "resume", "-", "--freeze-timers")
		if s := status(t, e, "a-2"); s != durable.StatusPending {
			t.Errorf("the resumed run is %s", s)
		}

		runOn(t, e, durablecli.ExitUsage, "", "cancel")
		runOn(t, e, durablecli.ExitUsage, "", "cancel", "a-1", "--workflow", "order")
		refused := runOn(t, e, durablecli.ExitUsage, "", "cancel", "--id-prefix", "a-")
		if !strings.Contains(refused.err, "cancel 3 runs") || !strings.Contains(refused.err, "--yes") || status(t, e, "a-1") != durable.StatusPending {
			t.Errorf("without --yes: %s", refused.err)
		}
		if got := runOn(t, e, 0, "", "cancel", "--id-prefix", "a-", "--dry-run", "-o", "json").out; !strings.Contains(got, `"matched": 3`) || status(t, e, "a-1") != durable.StatusPending {
			t.Errorf("the dry run says %s", got)
		}
		if got := runOn(t, e, 0, "", "cancel", "--id-prefix", "a-", "--yes", "--reason", "obsolete").out; !strings.Contains(got, "(filter)") {
			t.Errorf("the bulk cancel says %s", got)
		}
		run, err = e.Get(within(t), "a-3")
		if err != nil || run.Status != durable.StatusCancelled || run.Cancellation.Reason != "obsolete" || run.Cancellation.Actor == "" {
			t.Errorf("the cancelled run is %+v, %v", run, err)
		}
		if got := runOn(t, e, 0, "", "cancel", "--workflow", "none", "--yes"); !strings.Contains(got.err, "no run matches") {
			t.Errorf("without a match: %s", got.err)
		}
		if got := runOn(t, e, durablecli.ExitNotFound, "", "terminate", "missing", "b-1"); !strings.Contains(got.err, `"missing"`) || !strings.Contains(got.err, "1 of 2") {
			t.Errorf("the missing run is not named: %s", got.err)
		}
		if s := status(t, e, "b-1"); s != durable.StatusCancelled {
			t.Errorf("after an error of another run, the run is %s", s)
		}
		runOn(t, e, durablecli.ExitError, "", "pause", "b-1") // it has ended
	})
}

// A bulk command asks on a terminal, and does nothing unless the reply is yes.
func TestConfirm(t *testing.T) {
	t.Parallel()
	p := onFile(t)
	e := p.client(t)
	start(t, e, order, "a-1", "book")
	for _, c := range []struct {
		reply string
		code  int
		want  durable.Status
	}{{"n\n", durablecli.ExitError, durable.StatusPending}, {"\n", durablecli.ExitError, durable.StatusPending}, {"y\n", 0, durable.StatusCancelled}} {
		s := newScreen(t, 80, 24)
		if _, err := s.host.WriteString(c.reply); err != nil {
			t.Fatal(err)
		}
		if code := s.run(t, append([]string{"cancel", "--workflow", "order"}, p.flags...)...); code != c.code {
			t.Errorf("the reply %q exits with %d: %s", c.reply, code, s)
		}
		if shown := s.finish(); !strings.Contains(shown, "cancel 1 run? [y/N]") {
			t.Errorf("the question is %s", shown)
		}
		if got := status(t, e, "a-1"); got != c.want {
			t.Errorf("after the reply %q the run is %s", c.reply, got)
		}
	}
}

func TestRetryAndDelete(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, stop := p.engine(t)
		for _, id := range []string{"a-1", "a-2", "a-3"} {
			await(t, start(t, e, order, id, "declined"))
		}
		stop()
		golden(t, "retry", steady(runOn(t, e, 0, "", "retry", "a-1", "--dry-run").out+runOn(t, e, 0, "", "retry", "a-1", "--dry-run", "-o", "jsonl", "--from-end").out))
		if s := status(t, e, "a-1"); s != durable.StatusFailed {
			t.Errorf("after a dry run the run is %s", s)
		}
		runOn(t, e, 0, "", "retry", "a-1", "--from", "charge", "--reason", "the bank is back")
		if s := status(t, e, "a-1"); s != durable.StatusPending {
			t.Errorf("after a retry the run is %s", s)
		}
		if got := runOn(t, e, 0, "", "generations", "a-1").out; !strings.Contains(got, "the bank is back") {
			t.Errorf("the generations are %s", got)
		}
		runOn(t, e, durablecli.ExitNotFound, "", "retry", "a-2", "--from", "missing")
		runOn(t, e, durablecli.ExitUsage, "", "retry", "--workflow", "order")
		if got := runOn(t, e, 0, "", "retry", "--workflow", "order", "--yes", "-o", "id").out; got != "a-3\na-2\n" && got != "a-2\na-3\n" {
			t.Errorf("retried %q", got)
		}

		runOn(t, e, durablecli.ExitError, "", "delete", "a-1") // it is live
		runOn(t, e, 0, "", "terminate", "a-1", "a-2", "a-3")
		if got := runOn(t, e, 0, "", "delete", "a-1", "--dry-run").out; !strings.Contains(got, "1") || status(t, e, "a-1") != durable.StatusCancelled {
			t.Errorf("the dry run says %s", got)
		}
		runOn(t, e, 0, "", "delete", "a-1")
		runOn(t, e, durablecli.ExitUsage, "", "delete", "--workflow", "order")
		runOn(t, e, 0, "", "delete", "--workflow", "order", "--yes")
		if _, err := e.Get(within(t), "a-2"); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("the deleted run: %v", err)
		}
	})
}

func TestChangeRuns(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e := p.client(t)
		start(t, e, order, "a-1", "book", durable.Tag("old.tag", "x"))
		runOn(t, e, 0, "", "tag", "a-1", "team.owner=pay", "old.tag=")
		runOn(t, e, 0, "", "move", "mail", "a-1")
		runOn(t, e, 0, "a-1\n", "priority", "2", "-")
		runOn(t, e, 0, "", "timeout", "2d", "a-1")
		run, err := e.Get(within(t), "a-1")
		if err != nil || run.Queue != "mail" || run.Priority != 2 || run.Deadline.IsZero() || len(run.Tags) != 1 || run.Tags["team.owner"] != "pay" {
			t.Errorf("the run is %+v, %v", run, err)
		}
		for _, args := range [][]string{{"tag", "a-1"}, {"tag", "a-1", "x"}, {"priority", "high", "a-1"}, {"priority", "9", "a-1"}, {"timeout", "soon", "a-1"}, {"move", "mail"}} {
			runOn(t, e, durablecli.ExitUsage, "", args...)
		}
		runOn(t, e, durablecli.ExitNotFound, "", "move", "mail", "missing")
	})
}
