package main

import "time"

// nearby is how far from a deadline a signal may be to count as one around it.
const nearby = 50 * time.Millisecond

// deadlines checks that a bounded wait received the signal that was acknowledged by its deadline, and
// none that was sent after it. All processes and the server share one machine's clock.
func (e *evidence) deadlines(f *findings) {
	for _, k := range e.order {
		for name, c := range k.history {
			s, sent := e.boss.sent[k.RunID+"/"+name]
			if c.Kind != "receive" || c.Status != "completed" || c.NextAt.IsZero() || !sent || s.acked.IsZero() {
				continue
			}
			f.report.deadlines++
			if s.asked.Sub(c.NextAt).Abs() < nearby {
				f.report.close++
			}
			received := text(c.Output) != nothing
			switch {
			case !received && s.acked.Before(c.NextAt):
				f.wrong("run %s: %s received nothing by %v, and its signal was acknowledged at %v", k.RunID, name, c.NextAt, s.acked)
			// A wait that begins takes what is there, however long that write takes: it ended before its deadline.
			case received && s.asked.After(c.NextAt) && !c.EndedAt.Before(c.NextAt):
				f.wrong("run %s: %s was over at %v, and received a signal that was sent at %v", k.RunID, name, c.NextAt, s.asked)
			}
		}
	}
}
