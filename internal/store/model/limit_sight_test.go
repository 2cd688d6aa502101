package model_test

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// limitSight is what can be read of the runs and their permits.
type limitSight struct {
	runs    map[uuid.UUID]*store.Run
	permits []store.QueuedPermit // in the order of their places
}

func (s *limitSight) inOrder() []*store.Run {
	return slices.SortedFunc(maps.Values(s.runs), func(a, b *store.Run) int { return bytes.Compare(a.UUID[:], b.UUID[:]) })
}

// permit returns the permit of a step, or nil.
func (s *limitSight) permit(run uuid.UUID, step string) *store.QueuedPermit {
	for i := range s.permits {
		if p := &s.permits[i]; p.Run == run && p.Step == step {
			return p
		}
	}
	return nil
}

// stopped reports whether the run has ended or is paused.
func (s *limitSight) stopped(run uuid.UUID) bool { return s.runs[run].Status >= store.Paused }

func (l *limitCheck) read() *limitSight {
	seen := &limitSight{runs: make(map[uuid.UUID]*store.Run)}
	s := l.bed.handles[0]
	runs, err := s.ListRuns(l.ctx, store.Filter{}, uuid.UUID{}, 100)
	if err != nil {
		l.diverge("List: %v", err)
	}
	for _, r := range runs {
		seen.runs[r.UUID] = r
		permits, err := s.PermitsOfRun(l.ctx, r.UUID)
		if err != nil {
			l.diverge("PermitsOf: %v", err)
		}
		seen.permits = append(seen.permits, permits...)
	}
	slices.SortFunc(seen.permits, func(a, b store.QueuedPermit) int { return store.ComparePermits(&a.PermitRow, &b.PermitRow) })
	before := make(map[string]int)
	for _, p := range seen.permits {
		if p.Status == store.PermitWaiting {
			if p.StepsAhead != before[p.Key] {
				l.diverge("%s of %s has %d before it, want %d", p.Step, shorten(p.Run), p.StepsAhead, before[p.Key])
			}
			before[p.Key]++
		}
	}
	return seen
}

// executes reports whether the permit of a step counts: its run is executed by the process that was granted it, and the lease has
// not ended.
func (l *limitCheck) executes(s *limitedStep) bool {
	r := l.seen.runs[s.run]
	return s.held != nil && r != nil && r.Status == store.Running && r.Epoch == s.held.epoch && r.WakeAt.After(l.now)
}

// touched returns the keys of the lines that the calls name, each once.
func touched(batches []*store.PermitBatch) (keys []string) {
	for _, b := range batches {
		for _, g := range b.AllLimitKeys() {
			keys = append(keys, g.Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// checkGrants takes the outcomes over, and compares what is held, offered and granted with the bounds.
func (l *limitCheck) checkGrants(text string, before *limitSight, batches ...*store.PermitBatch) {
	for _, key := range touched(batches) {
		if line := l.lines[key]; line.now.Before(l.now) {
			line.now = l.now
		}
	}
	for _, s := range l.steps {
		if !l.executes(s) {
			s.held = nil
		}
	}
	granted, concurrentBefore := make(map[string]bool), l.row.settings.Concurrent
	for _, b := range batches {
		for _, r := range b.Returns {
			s := l.step(r.Run, r.Step)
			if s.held != nil && s.held.epoch == r.Epoch && s.held.attempt == r.Attempt {
				s.held = nil
			}
			s.waits = false
		}
		if len(b.Requests) > 0 {
			l.declare(l.code)
		}
		for _, a := range b.Requests {
			if l.takeOutcome(text, before, a) {
				granted[a.Key] = true
			}
		}
	}
	for _, p := range l.seen.permits {
		if p.Status == store.PermitOffered {
			if was := before.permit(p.Run, p.Step); was == nil || was.Status != store.PermitOffered {
				granted[p.Key] = true
			}
		}
	}
	concurrent := []int{l.row.settings.Concurrent}
	if len(batches) > 1 { // if one of the concurrent calls declares other settings, the other may still go by those before
		concurrent = append(concurrent, concurrentBefore)
	}
	for key := range granted {
		used := l.used(key, func(s *limitedStep) bool { return l.executes(s) && s.held.recorded })
		if !slices.Contains(concurrent, 0) && used > slices.Max(concurrent) {
			l.diverge("%s: %d units of key %q are held or offered, and the limit is %+v", text, used, key, l.row.settings)
		}
	}
	l.checkRow(text)
}

// used returns how many units of a line are offered, or held by those steps that count.
func (l *limitCheck) used(key string, counts func(*limitedStep) bool) (units int) {
	for _, s := range l.steps {
		if s.key == key && counts(s) {
			units += l.row.settings.CapUnits(s.units)
		}
	}
	for _, p := range l.seen.permits {
		if p.Key == key && p.Status == store.PermitOffered && l.offers(&p) {
			units += l.row.settings.CapUnits(p.Units)
		}
	}
	return units
}

// offers reports whether the offer has not ended. One that would last longer than any does was made before the clock was set back.
func (l *limitCheck) offers(p *store.QueuedPermit) bool {
	return p.OfferedUntil.After(l.now) && !p.OfferedUntil.After(l.now.Add(10*time.Second))
}

// takeOutcome takes the outcome of an ask over, and reports whether it was granted anew.
func (l *limitCheck) takeOutcome(text string, before *limitSight, a *store.PermitRequest) (granted bool) {
	s, line := l.step(a.Run, a.Step), l.lines[a.Key]
	had := before.permit(a.Run, a.Step)
	s.epoch, s.waits, s.retryAt, s.arrived = a.Epoch, a.Outcome == store.Locked, a.RetryAt, a.ArrivedAt
	switch a.Outcome {
	case store.Fenced:
		if r := l.seen.runs[a.Run]; r.Status == store.Running && r.Epoch == a.Epoch {
			l.diverge("%s: the owner of %s was fenced: %+v", text, shorten(a.Run), a.RunState)
		}
		return false
	case store.Locked:
		if s.held != nil && s.held.recorded {
			s.held = nil // the next attempt gives the permit of the one before back
		}
		if !a.RetryAt.IsZero() && !a.RetryAt.After(l.now) {
			l.diverge("%s: %s of %s is to ask again at %s", text, a.Step, shorten(a.Run), offset(a.RetryAt))
		}
		return false
	case store.Written:
	default:
		l.diverge("%s: the outcome is %v", text, a.Outcome)
	}
	again := had != nil && had.Status == store.PermitHeld && had.Epoch == a.Epoch && had.Attempt == a.Attempt
	s.held = &heldPermit{epoch: a.Epoch, attempt: a.Attempt, grantedAt: a.GrantedAt, recorded: again || l.row.settings.Concurrent > 0}
	if again {
		if !a.GrantedAt.Equal(had.GrantedAt) {
			l.diverge("%s: %s of %s was granted at %s, and the same ask again at %s", text, a.Step, shorten(a.Run), offset(had.GrantedAt), offset(a.GrantedAt))
		}
		return false
	}
	if r := l.seen.runs[a.Run]; a.GrantedAt.Before(line.now) || r.Epoch.Count < a.Epoch.Count {
		l.diverge("%s: granted at %s on a line at %s", text, offset(a.GrantedAt), offset(line.now))
	}
	line.grants = append(line.grants, lineGrant{a.GrantedAt, l.row.settings.CapUnits(a.Units)})
	l.checkRate(text, line)
	return true
}

// checkRate compares the grants in each window that ends with the last of them with the rate.
func (l *limitCheck) checkRate(text string, line *lineTrace) {
	if l.row.settings.Rate == 0 {
		return
	}
	units, last := 0, line.grants[len(line.grants)-1].at
	for _, g := range slices.Backward(line.grants) {
		units += g.units
		window := last.Sub(g.at)
		if most := l.row.settings.Burst + int(int64(l.row.settings.Rate)*int64(window)/int64(l.row.settings.Period)); units > most {
			l.diverge("%s: %d units were granted within %v, and the limit %+v allows %d", text, units, window, l.row.settings, most)
		}
	}
}

// checkPlaces objects to a place in a line that was changed or lost without a reason.
func (l *limitCheck) checkPlaces(text string, before *limitSight, b *store.PermitBatch) {
	for i := range before.permits {
		was := &before.permits[i]
		s, is := l.step(was.Run, was.Step), l.seen.permit(was.Run, was.Step)
		asked := slices.ContainsFunc(b.Requests, func(a *store.PermitRequest) bool { return a.Run == was.Run && a.Step == was.Step })
		returned := slices.ContainsFunc(b.Returns, func(r store.PermitReturn) bool {
			return r.Run == was.Run && r.Step == was.Step && r.Epoch == was.Epoch && r.Attempt == was.Attempt
		})
		switch {
		case was.Status == store.PermitHeld || returned || asked && s.held != nil:
		case is == nil || is.Status == store.PermitHeld:
			if !before.stopped(was.Run) {
				l.diverge("%s: %s of %s lost its place: %+v became %+v", text, was.Step, shorten(was.Run), was, is)
			}
		case !is.ArrivedAt.Equal(was.ArrivedAt):
			l.diverge("%s: the place of %s of %s was %s, and is %s", text, was.Step, shorten(was.Run), offset(was.ArrivedAt), offset(is.ArrivedAt))
		case was.Status == store.PermitOffered && is.Status == store.PermitWaiting && !asked && l.offers(was) &&
			before.runs[was.Run].Control&store.PausedMask == 0 &&
			!slices.ContainsFunc(b.Requests, func(a *store.PermitRequest) bool { return a.Run == was.Run && a.Key == was.Key }):
			l.diverge("%s: the offer to %s of %s ended before its time", text, was.Step, shorten(was.Run))
		}
	}
}

// checkOrder objects to a step that was served although one before it was not, and to one that waits although there is room.
func (l *limitCheck) checkOrder(text string, before *limitSight, b *store.PermitBatch) {
	asked := func(p *store.QueuedPermit) bool {
		return slices.ContainsFunc(b.Requests, func(a *store.PermitRequest) bool {
			return a.Run == p.Run && a.Step == p.Step && a.Outcome != store.Fenced
		})
	}
	able := func(p *store.QueuedPermit) bool {
		switch r := l.seen.runs[p.Run]; {
		case p.Status != store.PermitWaiting || r.Control&store.PausedMask != 0 && !asked(p):
			return false
		case asked(p):
			return r.WakeAt.After(l.now) // a permit of a run without a lease would end at once
		default:
			return !p.MissedOffer && r.Epoch == p.Epoch && (r.Status == store.Running || r.Status == store.Waiting)
		}
	}
	for _, key := range touched([]*store.PermitBatch{b}) {
		var first *store.QueuedPermit // the first that waits and could have been served
		for i := range l.seen.permits {
			p := &l.seen.permits[i]
			if p.Key == key && first == nil && able(p) {
				first = p
			}
		}
		if first == nil {
			continue
		}
		for i := range l.seen.permits {
			p := &l.seen.permits[i]
			was := before.permit(p.Run, p.Step)
			served := p.Status == store.PermitOffered && (was == nil || was.Status != store.PermitOffered) ||
				p.Status == store.PermitHeld && (was == nil || was.Status != store.PermitHeld || was.Epoch != p.Epoch || was.Attempt != p.Attempt)
			if p.Key == key && served && store.ComparePermits(&first.PermitRow, &p.PermitRow) < 0 {
				l.diverge("%s: %s of %s was served, and %s of %s was before it", text, p.Step, shorten(p.Run), first.Step, shorten(first.Run))
			}
		}
		if l.row.settings.Rate == 0 && l.row.settings.Concurrent > 0 {
			used := l.used(key, func(s *limitedStep) bool {
				p := l.seen.permit(s.run, s.name)
				return p != nil && p.Status == store.PermitHeld && l.inUse(p)
			})
			if units := l.row.settings.CapUnits(first.Units); used+units <= l.row.settings.Concurrent {
				l.diverge("%s: %s of %s waits for %d units while %d of %d are in use", text, first.Step, shorten(first.Run), units, used, l.row.settings.Concurrent)
			}
		}
	}
}

// inUse reports whether the permit counts.
func (l *limitCheck) inUse(p *store.QueuedPermit) bool {
	r := l.seen.runs[p.Run]
	return r != nil && r.Status == store.Running && r.Epoch == p.Epoch && r.WakeAt.After(l.now)
}
