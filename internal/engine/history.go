package engine

import "github.com/seed8ec063be/durable/internal/store"

// remember adds checkpoints to the run's history. The history is complete before the run's function is
// called.
func (r *run) remember(history []store.Step) {
	if r.history == nil && len(history) > 0 {
		r.history = make(map[string]*store.Step, len(history))
	}
	for i := range history {
		r.history[history[i].Name] = &history[i]
		r.seq.Store(max(r.seq.Load(), history[i].Seq))
		if history[i].Status.Terminal() {
			r.recorded++
			if history[i].Kind == store.KindSignal && history[i].EndedAt.After(r.sent) {
				r.sent = history[i].EndedAt
			}
		} else if id, err := childUUID(&history[i]); history[i].Kind == store.KindChild && err == nil {
			r.child(history[i].Name, id)
		}
	}
}

// nextSeq returns the sequence number of a call that begins now. It follows those of all earlier calls of
// the run.
func (r *run) nextSeq() int32 { return r.seq.Add(1) }
