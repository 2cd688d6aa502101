package durablecli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// payout is an input that not every JSON value is.
type payout struct {
	To    string
	Cents int
}

var payoutFlow = durable.Define("payout", func(c *durable.Ctx, in payout) (string, error) {
	return c.Step("pay", func(context.Context) (string, error) { return in.To, nil })
}, durable.Queue("payouts"))

// An embedded command knows the workflows of its engine: it starts no other, uses the queue that the workflow is defined with, and
// refuses an input that the workflow cannot read.
func TestStartOfEmbeddedCommand(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, err := durable.New(p.store, durable.Config{Workflows: []durable.Definition{payoutFlow, order}})
		if err != nil {
			t.Fatal(err)
		}
		for _, refused := range []struct {
			args, texts []string
		}{
			{[]string{"paiout", `{"To":"x","Cents":1}`, "--id", "p-1"}, []string{`"paiout"`, "order, payout"}},
			{[]string{"payout", `{"To":7}`, "--id", "p-1"}, []string{`workflow "payout" cannot read it`, "To"}},
			{[]string{"payout", `"x"`, "--id", "p-1"}, []string{`workflow "payout" cannot read it`}},
		} {
			got := runOn(t, e, 2, "", append([]string{"start"}, refused.args...)...)
			for _, text := range refused.texts {
				if !strings.Contains(got.err, text) {
					t.Errorf("start %q does not say %q, but: %s", refused.args, text, got.err)
				}
			}
		}
		if got := runOn(t, e, 2, "", "schedule", "set", "daily", "--cron", "@daily", "--workflow", "paiout"); !strings.Contains(got.err, `"paiout"`) || !strings.Contains(got.err, "order, payout") {
			t.Errorf("a schedule of an unknown workflow: %s", got.err)
		}
		runOn(t, e, 3, "", "get", "p-1")
		for id, want := range map[string]string{"p-2": "payouts", "p-3": "mail", "p-4": durable.DefaultQueue} {
			args := map[string][]string{
				"p-2": {"payout", `{"To":"x","Cents":1}`}, "p-3": {"payout", `{"To":"x"}`, "--queue", "mail"}, "p-4": {"order", `"book"`},
			}[id]
			runOn(t, e, 0, "", append([]string{"start", "--id", id}, args...)...)
			if run, err := e.Get(within(t), id); err != nil || run.Queue != want {
				t.Errorf("run %s is %+v, %v; its queue must be %s", id, run, err, want)
			}
		}
		runOn(t, p.client(t), 0, "", "start", "anything", `7`) // an engine without workflows knows none, as the program durable
	})
}

// A group key needs a queue with settings. At a shell, another queue is often meant.
func TestStartWithKeyNamesQueues(t *testing.T) {
	p := onFile(t)
	e := p.client(t)
	p.fails(t, 2, []string{"--queue NAME", "no queue has settings"}, "start", "order", "--key", "zed")
	if err := e.SetQueue(within(t), "mail", durable.QueueSettings{MaxExecuting: 4}); err != nil {
		t.Fatal(err)
	}
	p.fails(t, 2, []string{"--queue NAME", "mail"}, "start", "order", "--key", "zed")
	if got := p.try(t, "start", "order", "--key", "zed", "--timeout", "-3s"); strings.Contains(got.err, "--queue") {
		t.Errorf("another error names a queue: %s", got.err)
	}
	p.run(t, "start", "order", "--key", "zed", "--queue", "mail")
}
