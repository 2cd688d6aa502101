package model_test

import (
	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// queueSight is what can be read of the queue.
type queueSight struct {
	runs   []*store.Run // that have not ended
	places map[uuid.UUID]*store.QueuedRun
	use    store.QueueUse
	keys   map[string]store.QueueUse
	strays int // runs without a place
}

// read reads the queue, its runs and their places.
func (q *queueCheck) read() *queueSight {
	s := q.bed.handles[0]
	fail := func(err error) {
		if err != nil {
			q.diverge("read: %v", err)
		}
	}
	seen := &queueSight{places: make(map[uuid.UUID]*store.QueuedRun), keys: make(map[string]store.QueueUse)}
	all, err := s.ListRuns(q.ctx, store.Filter{}, uuid.UUID{}, 1000)
	fail(err)
	for _, r := range all {
		p, err := s.QueuePlaceOfRun(q.ctx, r.UUID)
		fail(err)
		if !r.Status.IsTerminal() {
			seen.runs = append(seen.runs, r)
		}
		if p == nil {
			if !r.Status.IsTerminal() {
				seen.strays++
			}
			continue
		}
		seen.places[r.UUID] = p
		k := seen.keys[p.Key]
		for _, use := range []*store.QueueUse{&seen.use, &k} {
			switch p.State {
			case store.PlaceExecuting:
				use.Executing++
			case store.PlaceInLine:
				use.Waiting++
			case store.PlaceBehindKey:
				use.Waiting++
				use.WaitingForKey++
			}
			if p.Root && p.HasBegun {
				use.InProgress++
			}
		}
		seen.keys[p.Key] = k
	}
	return seen
}

// look compares the counts with the places, and the bounds with both.
func (q *queueCheck) look() *queueSight {
	seen := q.read()
	all, err := q.bed.handles[1].Queues(q.ctx, q.now)
	if err != nil {
		q.diverge("Queues: %v", err)
	}
	defer func() { q.before, q.strayed = seen, q.strayed && (seen.strays > 0 || !q.live) }()
	if len(all) == 0 {
		return seen
	}
	if all[0].QueueUse != seen.use {
		q.diverge("the queue counts %+v, and its places are %+v", all[0].QueueUse, seen.use)
	}
	for _, k := range all[0].Keys {
		if k.QueueUse != seen.keys[k.Key] {
			q.diverge("key %q counts %+v, and its places are %+v", k.Key, k.QueueUse, seen.keys[k.Key])
		}
	}
	if q.before == nil || q.strayed {
		return seen
	}
	more := func(was, is, most int) bool { return most > 0 && is > most && is > was }
	was := q.before
	if more(was.use.Executing, seen.use.Executing, q.bounds.MaxExecuting) || more(was.use.InProgress, seen.use.InProgress, q.bounds.MaxInProgress) {
		q.diverge("the queue with %+v had %+v, and has %+v", q.bounds, was.use, seen.use)
	}
	for key, use := range seen.keys {
		if key != "" && (more(was.keys[key].Executing, use.Executing, q.bounds.MaxExecutingPerKey) || more(was.keys[key].InProgress, use.InProgress, q.bounds.MaxInProgressPerKey)) {
			q.diverge("key %q of the queue with %+v had %+v, and has %+v", key, q.bounds, was.keys[key], use)
		}
	}
	return seen
}

// idle objects to a run that waits although there is room for it. A queue with a rate is left out.
func (q *queueCheck) idle(seen *queueSight) {
	full := func(most, used int) bool { return most > 0 && used >= most }
	if !q.live || q.paused || q.strayed || q.bounds.Rate.Count > 0 || q.bounds.RatePerKey.Count > 0 || full(q.bounds.MaxExecuting, seen.use.Executing) {
		return
	}
	for id, p := range seen.places {
		use := seen.keys[p.Key]
		waits := p.State == store.PlaceInLine || p.State == store.PlaceBehindKey
		opens := p.Root && !p.HasBegun
		if waits && !(opens && full(q.bounds.MaxInProgress, seen.use.InProgress)) &&
			!(p.Key != "" && (full(q.bounds.MaxExecutingPerKey, use.Executing) || opens && full(q.bounds.MaxInProgressPerKey, use.InProgress))) {
			q.diverge("run %s waits (%+v) although there is room: %+v, its key %+v, of %+v", shorten(id), p.QueuePlace, seen.use, use, q.bounds)
		}
	}
}

// unclaimed objects to an admitted run that no worker has claimed, and that an admission should have taken back or let through.
func (q *queueCheck) unclaimed(seen *queueSight) {
	if !q.live || q.strayed {
		return
	}
	over := func(most, used int) bool { return most > 0 && used > most }
	for _, r := range seen.runs {
		p := seen.places[r.UUID]
		if p == nil || p.State != store.PlaceExecuting || p.Admission != store.AdmissionGranted || r.Status != store.Pending || r.WakeAt.After(q.now.Add(-store.CheckUnclaimedRunAfter)) {
			continue
		}
		if !r.Deadline.IsZero() && !r.Deadline.After(q.now) {
			q.diverge("run %s is admitted after its deadline", shorten(r.UUID))
		}
		if r.Control&store.HasStartBy != 0 && !p.StartBy.IsZero() && !p.StartBy.After(q.now) {
			q.diverge("run %s is admitted after the time by which it must begin", shorten(r.UUID))
		}
		if r.Epoch.Count == 0 && (q.paused || over(q.bounds.MaxExecuting, seen.use.Executing) || p.Root && over(q.bounds.MaxInProgress, seen.use.InProgress)) {
			q.diverge("run %s is admitted and not claimed: %+v of %+v, paused: %v", shorten(r.UUID), seen.use, q.bounds, q.paused)
		}
	}
}
