package durablecli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
)

// Replay compares exported runs with the code of the program, and exits with 6 if it does not fit one.
func TestReplay(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		old := renewal("price")
		e, stop := p.engine(t, old)
		start(t, e, old, "renewal/1", "ann")
		await(t, start(t, e, order, "order-1", "book"))
		await(t, start(t, e, order, "order-2", "declined"))
		until(t, "the wait for the signal", func() bool {
			info, err := e.Get(within(t), "renewal/1")
			return err == nil && info.Status == durable.StatusWaiting
		})
		dir := t.TempDir()
		p.run(t, "export", "renewal/1", "order-1", "order-2", "--dir", dir)
		stop()
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil || len(files) != 3 {
			t.Fatalf("the exports are %q, %v", files, err)
		}
		with := func(w ...durable.Definition) *durable.Engine {
			t.Helper()
			e, err := durable.New(p.store, durable.Config{Workflows: w})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		same := with(renewal("price"), order)
		if got := commandOn(t, same, "", append([]string{"replay"}, files...)...); got.code != durablecli.ExitDone || got.out != "" || !strings.Contains(got.err, "3 fit, 0 diverge, 0 would fail, 0 unknown") {
			t.Errorf("code that fits gives %+v", got)
		}
		next := with(renewal("quote"))
		if got := commandOn(t, next, "", append([]string{"replay"}, files...)...); got.code != durablecli.ExitDiverged || !strings.Contains(got.out, "renewal/1") || !strings.Contains(got.out, "diverges") || !strings.Contains(got.err, "0 fit, 1 diverge, 0 would fail, 2 unknown") {
			t.Errorf("code with a renamed step gives %+v", got)
		}
		document, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if got := commandOn(t, same, string(document), "replay", "-", "--all", "-o", "jsonl"); got.code != durablecli.ExitDone || !strings.Contains(got.out, `"file":"-"`) || !strings.Contains(got.out, `"id":"order-1"`) {
			t.Errorf("the JSON of a document in a pipe is %+v", got)
		}
		if got := commandOn(t, same, "{}", "replay", "-"); got.code != durablecli.ExitUsage || !strings.Contains(got.err, "export the run again") {
			t.Errorf("another document gives %+v", got)
		}
		if got := commandOn(t, same, "", "replay", filepath.Join(dir, "missing.json")); got.code != durablecli.ExitUsage {
			t.Errorf("a missing file gives %+v", got)
		}
		p.fails(t, durablecli.ExitUsage, []string{"embed durablecli.Command"}, "replay", files[0])
	})
}
