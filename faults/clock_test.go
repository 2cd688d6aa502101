package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
)

// Row 19: of three processes one is ten minutes ahead, one is ten minutes behind, and one
// jumps between the two. All times are the database's all the same.
func TestRow19_WrongClocks(t *testing.T) {
	began := time.Now()
	program := buildWrongClock(t)
	built := time.Since(began)
	db := fresh(t, "postgres")
	client := engineOn(t, db.openIn(t), durable.Config{})
	const lease = 4 * time.Second
	began = time.Now()
	var ws []*wrong
	for _, clock := range []string{"ahead", "behind", "jumping"} {
		ws = append(ws, spawnWrong(t, program, clock, db, lease))
	}
	awaitWorkers(t, client, len(ws))
	next := 0
	anyone := func() *wrong { next++; return ws[next%len(ws)] }
	worst := make(map[string]time.Duration)
	// inTime asserts that something came when it was due: never before, but for what the
	// reading of the database's clock may be off, and not by the clock of a process, ten minutes after.
	inTime := func(t *testing.T, what string, due, came time.Time) {
		t.Helper()
		late := came.Sub(due)
		if late < -reading || late > time.Minute {
			t.Errorf("%s came %v after its time", what, late)
		}
		worst["early"], worst["late"] = max(worst["early"], -late), max(worst["late"], late)
	}

	t.Run("leases hold", func(t *testing.T) {
		const runs = 15
		for i := range runs {
			anyone().do("long", fmt.Sprint("long", i), 3*lease/2)
		}
		held := make(map[string]int)
		for i := range runs {
			id := fmt.Sprint("long", i)
			at, err := result(t, client, namesake[time.Duration, moment]("long"), id)
			if r := info(t, client, id); err != nil || r.Epoch != 1 || r.Crashes != 0 || history(t, client, id)["long"].Attempts != 1 {
				t.Errorf("%s was taken from the process that executed it: %+v, %v", id, r, err)
			}
			held[at.Who]++
		}
		if len(held) != len(ws) {
			t.Errorf("not every process executed one: %v", held)
		}
		t.Logf("runs=%d of=%v each_for=%v lease=%v taken_over=0", runs, held, 3*lease/2, lease)
	})

	off := make(map[string]map[time.Duration]int) // of each process, by how much its clock was off in a step
	t.Run("timers", func(t *testing.T) {
		const runs, d = 12, 400 * time.Millisecond
		for i := range runs {
			anyone().do("timers", fmt.Sprint("timers", i), d)
			anyone().do("delay", fmt.Sprint("delayed", i), d)
		}
		handed := 0
		for i := range runs {
			id := fmt.Sprint("timers", i)
			all, err := result(t, client, namesake[time.Duration, []moment]("timers"), id)
			if err != nil || len(all) != 5 {
				t.Fatal(all, err)
			}
			h := history(t, client, id)
			for i, m := range all {
				if off[m.Who] == nil {
					off[m.Who] = make(map[time.Duration]int)
				}
				off[m.Who][m.Wall.Sub(m.True).Round(time.Second)]++
				if i > 0 {
					inTime(t, fmt.Sprint(id, ", wait ", i), all[i-1].True.Add(d), m.True)
					if m.Who != all[i-1].Who {
						handed++
					}
				}
			}
			for _, name := range []string{"sleep", "nothing"} {
				if bound := h[name].NextAt.Sub(h[name].StartedAt); bound != d {
					t.Errorf("%s of %s is to take %v", name, id, bound)
				}
			}
			id = fmt.Sprint("delayed", i)
			at, err := result(t, client, namesake[time.Duration, moment]("long"), id)
			if err != nil {
				t.Fatal(err)
			}
			inTime(t, id, info(t, client, id).CreatedAt.Add(d), at.True)
		}
		if handed == 0 {
			t.Error("no process waited for what another had recorded")
		}
		t.Logf("waits=%d across_processes=%d worst_early=%v worst_late=%v", 5*runs, handed, worst["early"].Round(100*time.Microsecond), worst["late"].Round(time.Millisecond))
	})

	t.Run("deadlines", func(t *testing.T) {
		const runs, d = 9, 500 * time.Millisecond
		for i := range runs {
			anyone().do([]string{"work", "wait"}[i%2], fmt.Sprint("bounded", i), d)
		}
		for i := range runs {
			id := fmt.Sprint("bounded", i)
			_, err := result(t, client, namesake[bool, int]("bounded"), id)
			mustFail(t, err, durable.ErrTimeout, id)
			r := info(t, client, id)
			if r.Deadline.Sub(r.CreatedAt) != d {
				t.Errorf("%s is to end after %v", id, r.Deadline.Sub(r.CreatedAt))
			}
			inTime(t, "the deadline of "+id, r.Deadline, history(t, client, id)["over"].StartedAt)
		}
		for _, w := range ws { // and by the machine's clock
			w.do("inbox", "empty-"+w.name, 0) // what it said until then has been read
			for _, line := range w.seen {
				if f := strings.Fields(line); f[0] == "over" {
					ns, err := strconv.ParseInt(f[2], 10, 64)
					if err != nil {
						t.Fatal(err)
					}
					inTime(t, "the end of "+f[1], info(t, client, f[1]).Deadline, time.Unix(0, ns))
				}
			}
		}
		t.Logf("timeouts=%d", runs)
	})

	t.Run("signals are received in order", func(t *testing.T) {
		const n = 12
		run := start(t, client, namesake[int, []int]("inbox"), n, durable.ID("inbox"), durable.Delay(time.Duration(n)*70*time.Millisecond))
		for i := range n {
			anyone().do("signal", run.ID(), i)
			realtime.Pass(50*time.Millisecond, "more than the reading of a clock may be off")
		}
		got, err := run.Result(bounded(t))
		if err != nil || !slices.IsSorted(got) || len(got) != n {
			t.Errorf("sent 0 to %d one after the other by %d processes, received %v, %v", n-1, len(ws), got, err)
		}
		t.Logf("signals=%d processes=%d received=%v", n, len(ws), got)
	})

	t.Run("a paused timer is moved by the time of the pause", func(t *testing.T) {
		ws[0].do("timers", "frozen", 2*time.Second)
		await(t, "the sleep", func() bool { return info(t, client, "frozen").Status == durable.StatusWaiting })
		due := history(t, client, "frozen")["sleep"].NextAt
		most := time.Now()
		ws[0].do("pause", "frozen", 0)
		least := time.Now()
		realtime.Pass(300*time.Millisecond, "the run is paused for this long")
		shortest := time.Since(least)
		ws[1].do("thaw", "frozen", 0)
		longest := time.Since(most)
		moved := history(t, client, "frozen")["sleep"].NextAt.Sub(due)
		if moved < shortest-reading || moved > longest+reading {
			t.Errorf("paused for %v to %v, moved by %v", shortest, longest, moved)
		}
		ws[2].do("cancel", "frozen", 0)
		t.Logf("paused=%v moved=%v", longest.Round(time.Millisecond), moved.Round(time.Millisecond))
	})

	flowOfWrongClocks(t, client, anyone, inTime)

	t.Run("all times are the database's", func(t *testing.T) {
		after, times, kinds := began.Add(-reading), 0, make(map[durable.EventType]int)
		check := func(what string, at time.Time) {
			before := time.Now().Add(reading)
			if times++; at.Before(after) || at.After(before) {
				t.Errorf("%s is %v off", what, max(after.Sub(at), at.Sub(before)))
			}
		}
		events, err := client.Events(bounded(t), durable.Page{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			kinds[e.Type]++
			check(fmt.Sprint("the event ", e.Type, " of ", e.ID), e.At)
		}
		if kinds[durable.EventLeaseLost] != 0 || kinds[durable.EventCompleted] == 0 || kinds[durable.EventExpired] == 0 || kinds[durable.EventPaused] == 0 {
			t.Errorf("events %v", kinds)
		}
		page, err := client.List(bounded(t), durable.Filter{}, durable.Page{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Runs {
			check("the beginning of "+r.ID, r.CreatedAt)
			for _, at := range []time.Time{r.StartedAt, r.EndedAt} {
				if !at.IsZero() {
					check("a time of "+r.ID, at)
				}
			}
			for name, c := range history(t, client, r.ID) {
				check(name+" of "+r.ID, c.StartedAt)
			}
		}
		workers, err := client.Workers(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range workers {
			check("the start of worker "+w.Name, w.StartedAt)
			check("the heartbeat of worker "+w.Name, w.HeartbeatAt)
		}
		t.Logf("times=%d events=%v", times, kinds)
	})

	t.Run("lists are in the order of the starts", func(t *testing.T) {
		const n = 9
		for i := range n {
			anyone().do("inbox", fmt.Sprint("listed", i), 0)
		}
		page, err := client.List(bounded(t), durable.Filter{IDPrefix: "listed"}, durable.Page{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range page.Runs {
			got = append(got, strings.TrimPrefix(r.ID, "listed"))
		}
		if !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) {
			t.Errorf("started 0 to %d one after the other by %d processes, newest first they are %v", n-1, len(ws), got)
		}
	})

	// The clocks were off, and one of them jumped.
	jumps := 0
	for _, w := range ws {
		w.in.Close()
		w.mustEndWell()
		for _, line := range w.seen {
			if by, ok := strings.CutPrefix(line, "off "); ok && w.name == "jumping" {
				jumps++
			} else if ok && by != map[string]string{"ahead": "600", "behind": "-600"}[w.name] {
				t.Errorf("the clock of %s was off by %s", w.name, by)
			}
		}
	}
	const ten = 10 * time.Minute
	if jumps < 6 || len(off["ahead"]) != 1 || off["ahead"][ten] == 0 || len(off["behind"]) != 1 || off["behind"][-ten] == 0 || len(off["jumping"]) < 2 {
		t.Errorf("the clocks were not wrong: %d jumps, %v", jumps, off)
	}
	t.Logf("build=%v jumps=%d offsets_in_steps=%v worst_early=%v worst_late=%v",
		built.Round(time.Second/10), jumps, off, worst["early"].Round(100*time.Microsecond), worst["late"].Round(time.Millisecond))
}
