package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/queues"
	"github.com/seed8ec063be/durable/internal/store"
)

// These errors are exported by the root package under the same names.
var (
	ErrInvalidConfig = errors.New("durable: invalid configuration")
	ErrQueueFull     = errors.New("durable: the queue is full")
	ErrQueueClosed   = errors.New("durable: the queue takes no starts")
)

// MarkStartsNeedingQueuePlace gives a place to each request whose queue has settings, and therefore a row. This process does not execute runs with
// a place at once. MarkStartsNeedingQueuePlace returns ErrInvalidConfig if a request needs the row of a queue and the queue has none.
// MarkStartsNeedingQueuePlace returns ErrQueueFull or ErrQueueClosed if a queue refuses a root run. A queue does not refuse a run that already
// exists, so that a start whose result was lost can be repeated. A queue does not refuse a start with a start key either.
func (e *Engine) MarkStartsNeedingQueuePlace(ctx context.Context, requests []StartRequest) error {
	began := time.Now()
	rows, _ := e.queueRows.ReadRowsIfStale(ctx)
	if len(rows) == 0 && !anyRequiresQueueSettings(requests) {
		return nil
	}
	var fresh *queues.Reading
	counts := make(map[string]int) // how many of the requests are for each queue
	for i := range requests {
		q := &requests[i]
		row, found := rows[q.Queue]
		if q.requiresQueueSettings() && (!found || row.Deleted) {
			if fresh == nil { // the queue may be new
				fresh = e.queueRows.RowsReadSince(ctx, began)
				rows = fresh.ByName
			}
			if row, found = rows[q.Queue]; !found || row.Deleted {
				return e.queueWithoutRowError(q, fresh.ReadFailed)
			}
		}
		if q.hasQueueRow = found && !row.Deleted; q.hasQueueRow && !q.isChild {
			counts[q.Queue]++
		}
	}
	for name, n := range counts {
		if refusal := e.checkQueueAcceptsStarts(ctx, rows[name], n); refusal != nil {
			if requests[0].StartKey != nil { // a request with a start key is the only one; package startkey finds out whether it creates a run
				requests[0].queueRefusal = refusal
				return nil
			}
			existing, err := e.countStartsOfExistingRuns(ctx, name, requests)
			if err != nil {
				return err
			}
			if existing < n {
				return refusal
			}
		}
	}
	return nil
}

// requiresQueueSettings reports whether the request has an option for queues with settings.
func (q *StartRequest) requiresQueueSettings() bool { return q.GroupKey != "" && !q.inheritsGroupKey }

func anyRequiresQueueSettings(requests []StartRequest) bool {
	for i := range requests {
		if requests[i].requiresQueueSettings() {
			return true
		}
	}
	return false
}

func (e *Engine) queueWithoutRowError(q *StartRequest, unread bool) error {
	if unread {
		return fmt.Errorf("start workflow %q: %w: the settings of queue %q cannot be read", q.Workflow, store.ErrUnavailable, q.Queue)
	}
	return fmt.Errorf("%w: workflow %q is started with GroupKey(%q) in queue %q, which has no settings: create them with SetQueue, start a worker whose Config.QueueSettings declares them, or leave the option out",
		ErrInvalidConfig, q.Workflow, q.GroupKey, q.Queue)
}

// checkQueueAcceptsStarts returns why the queue does not accept n further starts, or nil. If the depth cannot be read, it returns
// nil: the write of the start then fails if the database is unavailable.
func (e *Engine) checkQueueAcceptsStarts(ctx context.Context, row store.QueueRow, n int) error {
	if row.Settings.Closed {
		return fmt.Errorf("%w: queue %q is closed: use another queue, or open this one with SetQueue", ErrQueueClosed, row.Name)
	}
	most := row.Settings.Depth
	if most == 0 || e.queueDepths.TryTakeFreePlaces(row.Name, most, n) {
		return nil
	}
	began := time.Now()
	depth, err := e.store.QueueDepth(ctx, row.Name, most)
	if err == nil {
		e.queueDepths.RecordReading(row.Name, began, most, most-depth-n)
	}
	if err == nil && depth+n > most {
		return fmt.Errorf("%w: %d runs wait in queue %q, and its Depth is %d: try again later, use another queue, or raise Depth with SetQueue", ErrQueueFull, depth, row.Name, most)
	}
	return nil
}

// isQueueRefusal reports whether the error refuses a start because of its queue.
func isQueueRefusal(err error) bool {
	return errors.Is(err, ErrInvalidConfig) || errors.Is(err, ErrQueueFull) || errors.Is(err, ErrQueueClosed)
}

// countStartsOfExistingRuns returns how many of the requests for the queue name a run that exists.
func (e *Engine) countStartsOfExistingRuns(ctx context.Context, queue string, requests []StartRequest) (n int, err error) {
	var refs []store.RunRef
	for i := range requests {
		if q := &requests[i]; q.hasQueueRow && q.Queue == queue && q.Name != "" && !q.isChild {
			refs = append(refs, store.RunRef{UUIDOrName: q.Name})
		}
	}
	if len(refs) == 0 {
		return 0, nil
	}
	found, err := e.store.GetRunsSelectingPayloads(ctx, refs, store.NoPayloads)
	for _, run := range found {
		if run != nil {
			n++
		}
	}
	return n, err
}

// setQueuePlace sets the admission state and the place of a run that needs one.
func (q *StartRequest) setQueuePlace(s *store.StartWrite) {
	if !q.hasQueueRow && q.StartBy <= 0 {
		return
	}
	r := &s.Run
	s.Place = &store.QueuePlace{
		Run: r.UUID, Queue: r.Queue, Key: q.GroupKey, Weight: max(1, q.Weight), Priority: r.Priority, State: store.PlaceNotArrived, Root: !q.isChild,
	}
	if q.hasQueueRow {
		r.Admission = store.AdmissionPending
	}
	if q.StartBy > 0 {
		r.Control, s.Place.StartBy = store.HasStartBy, r.WakeAt.Add(q.StartBy)
	}
}

// resolveChildQueue sets the group key of a child that is started in the queue of its parent, and finds out whether
// the child needs a place. It returns ErrInvalidConfig if the child has a group key of its own and its queue has no settings.
func (r *run) resolveChildQueue(q *StartRequest) error {
	q.isChild = true
	one := []StartRequest{*q}
	if err := r.e.MarkStartsNeedingQueuePlace(r.writeCtx, one); err != nil {
		return err
	}
	q.hasQueueRow = one[0].hasQueueRow
	if !q.hasQueueRow || q.GroupKey != "" || q.Queue != r.row.Queue {
		return nil
	}
	own, err := r.readQueuePlace()
	if err == nil && own != nil {
		q.GroupKey, q.Weight, q.inheritsGroupKey = own.Key, own.Weight, true
	}
	return err
}

// holdForMissingQueue holds the run because the child that it starts has a group key and the queue has no settings. The queue may get settings
// at any time, and the run is not at fault, so the hold does not count as a crash: the run is claimed again after each
// store.UncountedHoldDelay, without a limit.
func (r *run) holdForMissingQueue(child string, err error) {
	r.suspend(suspensionSpec{cause: ErrHeld, status: store.Pending, heldReason: holdReason("start child", child, err), queueMissing: true})
}

// readQueuePlace returns the place of this run in its queue, or nil. It reads the place only once, because its group key does not
// change.
func (r *run) readQueuePlace() (*store.QueuedRun, error) {
	if p := r.queuePlace.Load(); p != nil {
		return p, nil
	}
	var p *store.QueuedRun
	err := r.e.retryUntilPatienceEnds(r.writeCtx, newWriteOptions(r.ownedCtx.Done()), func() (err error) {
		p, err = r.e.store.QueuePlaceOfRun(r.writeCtx, r.row.UUID)
		return err
	})
	if err != nil {
		return nil, err
	}
	if p == nil {
		p = new(store.QueuedRun)
	}
	r.queuePlace.Store(p)
	return p, nil
}
