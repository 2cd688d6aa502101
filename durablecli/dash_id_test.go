package durablecli_test

import (
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
	"github.com/seed8ec063be/durable/ui"
)

var copied = regexp.MustCompile(`data-copy="([^"]*)"`)

// copiedCommands returns the arguments of the commands that the page of a run offers for a copy, as a shell splits them.
func copiedCommands(t *testing.T, e *durable.Engine, id string) (commands [][]string) {
	t.Helper()
	h := ui.Handler(e, ui.Authorize(func(*http.Request, ui.Action) (string, error) { return "ann", nil }))
	page := httptest.NewRecorder()
	h.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/run?id="+url.QueryEscape(id), nil))
	for _, found := range copied.FindAllStringSubmatch(page.Body.String(), -1) {
		split := exec.CommandContext(within(t), "sh", "-c", `durable() { printf '%s\0' "$@"; }; eval "$1"`, "sh", html.UnescapeString(found[1]))
		words, err := split.Output()
		if err != nil {
			t.Fatalf("%s: %v", found[1], err)
		}
		commands = append(commands, strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00"))
	}
	return commands
}

// Nothing of an ID is read as a flag: a copied command reaches the run, or is refused.
func TestCopiedCommandsReachTheirRunOnly(t *testing.T) {
	t.Parallel()
	p := onFile(t)
	e := p.client(t)
	hostile := []string{"-yscancelled", "--yes", "-", "it's; a $(test) 'a-run'", "a-run --yes"}
	for _, id := range append(slices.Clone(hostile), "a-run") {
		start(t, e, order, id, "book")
		if _, err := e.Terminate(within(t), id); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range hostile {
		commands := copiedCommands(t, e, id)
		if len(commands) < 13 {
			t.Fatalf("the page of run %q offers only %q", id, commands)
		}
		var last []string
		for _, args := range commands {
			if args[0] == "delete" {
				last = args
				continue
			}
			want := durablecli.ExitError // the state of the run does not allow it
			switch args[0] {
			case "get", "tag":
				want = 0
				args = slices.Clone(args)
				if at := slices.Index(args, "KEY=VALUE"); at > 0 {
					args[at] = "team.owner=pay"
				}
			case "cancel", "terminate":
				want = 0
			}
			runOn(t, e, want, "", args...)
		}
		runOn(t, e, 0, "", last...)
		if _, err := e.Get(within(t), "a-run"); err != nil {
			t.Fatalf("durable %q deletes a-run: %v", last, err)
		}
		if _, err := e.Get(within(t), id); err == nil {
			t.Errorf("durable %q does not delete run %q", last, id)
		}
	}
}

// The IDs that -o id and start write to a pipe are those of the runs, also with characters that are escaped for people.
func TestWrittenIDsNameTheRuns(t *testing.T) {
	t.Parallel()
	p := onFile(t)
	e := p.client(t)
	const id = "order\u200f\u202e\u0085-1"
	if got := runOn(t, e, 0, "", "start", "order", `"book"`, "--id", id).out; got != id+"\n" {
		t.Errorf("start writes %q", got)
	}
	start(t, e, order, `order\u200f\u202e\x85-1`, "book")
	ids := runOn(t, e, 0, "", "list", "-o", "id", "--id-prefix", "order\u200f").out
	runOn(t, e, 0, ids, "pause", "-")
	if s := status(t, e, id); s != durable.StatusPaused {
		t.Errorf("%q was listed, and the run is %s", ids, s)
	}
	if got := runOn(t, e, 0, "", "get", id, "-o", "id").out; got != id+"\n" {
		t.Errorf("get writes %q", got)
	}
	s := newScreen(t, 80, 24)
	s.run(t, append([]string{"list", "-o", "id"}, p.flags...)...)
	if shown := s.finish(); strings.ContainsAny(shown, "\u200f\u202e\u0085") {
		t.Errorf("the terminal gets %q", shown)
	}
}

// A condition that is given and empty, as of a variable of a shell that is not set, is refused: without it, the command would reach more runs.
func TestEmptyConditionIsRefused(t *testing.T) {
	t.Parallel()
	p := onFile(t)
	e := p.client(t)
	start(t, e, order, "a-1", "book")
	for _, flag := range []string{"--workflow", "--queue", "--key", "--tag", "--id-prefix", "--created-after", "--created-before", "--run-version", "--worker", "--ended-after", "--ended-before", "--failed-type", "--failed-step", "--status", "--parent", "--priority", "--older-than"} {
		if got := runOn(t, e, durablecli.ExitUsage, "", "terminate", "--created-before", "now", flag, "", "--yes"); !strings.Contains(got.err, flag) {
			t.Errorf("an empty %s: %s", flag, got.err)
		}
	}
	runOn(t, e, durablecli.ExitUsage, "", "prune", "--older-than", "1d", "--workflow", "", "--yes")
	if s := status(t, e, "a-1"); s != durable.StatusPending {
		t.Errorf("the run is %s", s)
	}
}

// A group of failures of a step whose name begins with a dash is not that of another step; the dash alone stands for no step.
func TestFailedStepWithDash(t *testing.T) {
	t.Parallel()
	p := onFile(t)
	charges := durable.Define("charges", func(c *durable.Ctx, step string) (string, error) {
		if step == "" {
			return "", errDeclined
		}
		return "", c.Do(step, func(context.Context) error { return errDeclined })
	})
	e, _ := p.engine(t, charges)
	for id, step := range map[string]string{"plain": "charge", "dashed": "-charge", "none": ""} {
		await(t, start(t, e, charges, id, step))
	}
	for step, want := range map[string]string{"charge": "plain\n", "-charge": "dashed\n", "-": "none\n"} {
		if got := runOn(t, e, 0, "", "list", "-o", "id", "-w", "charges", "--failed-type", "*errors.errorString", "--failed-step", step).out; got != want {
			t.Errorf("the runs that failed in step %q are %q", step, got)
		}
	}
	group := []string{"-w", "charges", "--failed-type", "*errors.errorString"}
	if got := runOn(t, e, 0, "", append([]string{"list", "-o", "id"}, group...)...).out; got != "none\n" {
		t.Errorf("the runs of a group without a step are %q", got)
	}
	for _, given := range [][]string{group, {"-w", "charges"}} { // as by a variable that is not set
		if got := runOn(t, e, durablecli.ExitUsage, "", slices.Concat([]string{"retry", "--yes", "--failed-step", ""}, given)...); !strings.Contains(got.err, "--failed-step is given and empty") {
			t.Errorf("an empty --failed-step with %v: %s", given, got.err)
		}
	}
}
