package main

import "time"

// nearby is the longest time between a deadline and a signal that counts as sent around the
// deadline.
const nearby = 50 * time.Millisecond

// checkDeadlines checks that a Receive with a deadline received a signal that was acknowledged before the deadline, and
// none that was sent after it. All processes and the server share one machine's clock.
func (e *evidence) checkDeadlines(f *findings) {
	for _, k := range e.order {
		for name, c := range k.history {
			s, sent := e.controller.sent[k.RunID+"/"+name]
			if c.Kind != "receive" || c.Status != "completed" || c.NextAt.IsZero() || !sent || s.acked.IsZero() {
				continue
			}
			f.report.deadlines++
			if s.began.Sub(c.NextAt).Abs() < nearby {
				f.report.aroundDeadline++
			}
			received := unquote(c.Output) != nothingReceived
			switch {
			case !received && s.acked.Before(c.NextAt):
				f.addViolation("run %s: %s received nothing by %v, and its signal was acknowledged at %v", k.RunID, name, c.NextAt, s.acked)
			// A Receive that begins takes a signal that is there, even if its write is committed after the deadline.
			case received && s.began.After(c.NextAt) && !c.EndedAt.Before(c.NextAt):
				f.addViolation("run %s: %s was over at %v, and received a signal that was sent at %v", k.RunID, name, c.NextAt, s.began)
			}
		}
	}
}
