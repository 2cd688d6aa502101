package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/schedule"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// DeclaredSchedule is a schedule that the code of this process declares.
type DeclaredSchedule struct {
	Name     string
	Settings *schedule.Settings
}

// schedulesPerQuery is how many due schedules one query returns.
const schedulesPerQuery = 100

// maxConcurrentFires is how many schedules a worker fires at the same time, so that schedules which are due at once share
// the waits for the disk.
const maxConcurrentFires = 3

// redeclareInterval is the time between two checks of the declarations, because the declaration that applies may come from a version
// without live workers.
const redeclareInterval = 30 * time.Second

// scheduleActor is the actor of the cancels that schedules request.
const scheduleActor = "durable"

// scheduleLoop fires the schedules that are due. Every worker does this, and the first one fires the schedule. While nothing is due,
// the loop makes one query for each poll.
func (w *worker) scheduleLoop(ctx context.Context) {
	declare := time.Now() // when to check the declarations
	failed, logged := firstClaimRetryDelay, false
	faulty := make(failedSchedules)
	for ctx.Err() == nil {
		if len(w.e.cfg.Schedules) > 0 && !time.Now().Before(declare) {
			declare = time.Now().Add(redeclareInterval)
			err := w.declareSchedules(ctx)
			if older, is := errors.AsType[*OlderWorkerError](err); is {
				declare = time.Now() // with each poll
				if !logged {
					w.log.Warn("the schedules that this code declares wait until a worker with an older version of durable has stopped", telemetry.KeyError, older)
				}
				logged = true
			} else if err != nil && ctx.Err() == nil {
				w.logFailure("could not declare schedules; trying again", err)
				declare = time.Now().Add(failed)
			}
		}
		began := w.e.clock.Now()
		due, next, err := w.e.store.DueSchedules(ctx, began, schedulesPerQuery+len(faulty))
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			w.stopIfFatal(err)
			w.logFailure("could not look for due schedules; trying again", err)
			if !wakeup.SleepCtx(ctx, failed/2+rand.N(failed)) {
				return
			}
			failed = min(2*failed, maxClaimRetryDelay)
			continue
		}
		failed = firstClaimRetryDelay
		if w.fireSchedules(ctx, faulty.filterReadyToFire(due, time.Now()), faulty) {
			continue
		}
		w.awaitNotificationOrDue(ctx, w.scheduleHints, faulty.nextRetryIn(time.Now(), w.otherWorkers.PollInterval(w.e.cfg.Poll)), next)
	}
}

// fireSchedules fires the schedules, each in a transaction of its own, maxConcurrentFires of them at the same time, and reports whether
// anything changed. It returns when all of them are done. Their order is random, so that several workers seldom fire the same schedule
// at the same time.
func (w *worker) fireSchedules(ctx context.Context, due []string, faulty failedSchedules) (changed bool) {
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	var (
		mu     sync.Mutex // guards changed and faulty
		next   atomic.Int64
		firing sync.WaitGroup
	)
	for range min(len(due), maxConcurrentFires) {
		firing.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(due) {
					return
				}
				did, err := w.fireSchedule(ctx, due[i])
				mu.Lock()
				changed = changed || did
				if err == nil {
					delete(faulty, due[i])
				} else if ctx.Err() == nil {
					faulty.noteFailure(due[i], time.Now())
					w.reportFireFailure(due[i], err)
				}
				mu.Unlock()
			}
		})
	}
	firing.Wait()
	return changed
}

func (w *worker) reportFireFailure(name string, err error) {
	if problem, is := errors.AsType[*unfireableScheduleError](err); is {
		w.log.Error("a schedule cannot be fired; trying again within a minute", telemetry.KeySchedule, name, telemetry.KeyError, problem.err)
		return
	}
	w.stopIfFatal(err)
	w.logFailure("could not fire a schedule; trying again", err, telemetry.KeySchedule, name)
}

// unfireableScheduleError is the error of fireSchedule for a schedule that cannot be fired. The row of the schedule has the reason.
type unfireableScheduleError struct{ err error }

func (p *unfireableScheduleError) Error() string { return p.err.Error() }

// fireSchedule decides the due times of one schedule. It reports whether it changed the schedule.
func (w *worker) fireSchedule(ctx context.Context, name string) (changed bool, err error) {
	began := time.Now()
	w.e.queueRows.ReadRowsIfStale(ctx)
	changed, err = w.fireScheduleOnce(ctx, name, began)
	if errors.Is(err, schedule.ErrUnchecked) { // the queue may be new
		w.e.queueRows.RowsReadSince(ctx, began)
		changed, err = w.fireScheduleOnce(ctx, name, began)
	}
	return changed, err
}

func (w *worker) fireScheduleOnce(ctx context.Context, name string, began time.Time) (changed bool, err error) {
	f := &schedule.Firing{Name: name, Now: w.e.clock.Now(), NewStart: w.e.newScheduleStart, Check: w.e.newScheduleSettingsCheckFromCache(began)}
	var state store.ScheduleSnapshot
	change := &store.ScheduleChangeRequest{Name: name, SkipLocked: true, TimesToDecide: f.TimesToDecide, Plan: func(s store.ScheduleSnapshot) *store.ScheduleWrite {
		state = s
		return f.Plan(s)
	}}
	if err := w.e.store.ChangeSchedule(ctx, change); err != nil {
		return false, err
	}
	if errors.Is(f.Err, schedule.ErrUnchecked) {
		return false, f.Err
	}
	if f.Err != nil {
		return false, &unfireableScheduleError{f.Err}
	}
	row := state.Row
	if change.AppliedWrite != nil {
		row, changed = &change.AppliedWrite.Row, true
		w.e.reportScheduleFires(ctx, change.AppliedWrite)
	}
	if row != nil && row.CancelsLastRun && row.LastRun.Valid && !(row.LastRun == state.Row.LastRun && state.LastControl&store.CancelRequested != 0) {
		return changed, w.e.cancelPreviousScheduledRun(ctx, name, row.LastRun.UUID)
	}
	return changed, nil
}

// cancelPreviousScheduledRun cancels the run of the previous scheduled time. If the process dies before that, DueSchedules returns the
// schedule again.
func (e *Engine) cancelPreviousScheduledRun(ctx context.Context, name string, run uuid.UUID) error {
	o := &store.ControlRequest{
		Verb: store.VerbCancel, Scope: store.CancelWholeTree, Runs: uuidList(run), Actor: scheduleActor,
		Reason: fmt.Sprintf("the next time of schedule %q has come", name),
	}
	o.Now, o.Error = e.clock.Now(), record.Cancelled(o.Reason, o.Actor).Encode()
	if err := e.store.ControlRuns(ctx, o); err != nil {
		return err
	}
	e.logCancelledRuns(o)
	e.worker().wakeLoops()
	return nil
}

// newScheduleStart returns the start of the run of a scheduled time. Any worker can claim the run at once or, in a queue with
// settings, when an admission has admitted it. No queue refuses the run.
func (e *Engine) newScheduleStart(name string, s *schedule.Settings, at time.Time) *store.StartWrite {
	now := e.clock.Now()
	id := schedule.RunID(name, at)
	start := &store.StartWrite{Run: store.Run{
		UUID: store.NewScheduledUUID(id, now), Name: id, Workflow: s.Workflow, Version: e.programVersion(), Queue: s.Queue, Status: store.Pending,
		Priority: s.Priority, Input: s.Input, CreatedAt: now, WakeAt: now,
	}}
	if s.Timeout > 0 {
		start.Timeout = time.Duration(s.Timeout)
		start.Run.Deadline = now.Add(start.Timeout)
	}
	for key, value := range s.Tags {
		start.Tags = append(start.Tags, store.Tag{Key: key, Value: value})
	}
	row, found := e.queueRows.CachedRows()[s.Queue]
	(&StartRequest{GroupKey: s.GroupKey, Weight: s.Weight, hasQueueRow: found && !row.Deleted}).setQueuePlace(start)
	slices.SortFunc(start.Tags, func(a, b store.Tag) int { return cmp.Compare(a.Key, b.Key) })
	return start
}

// newScheduleSettingsCheckFromCache returns a function that returns ErrInvalidConfig if the settings have a group key and their queue has no
// row. The function uses the cached rows. If it finds no row, and the cache was read before the given time, it returns schedule.ErrUnchecked.
func (e *Engine) newScheduleSettingsCheckFromCache(since time.Time) func(name string, s *schedule.Settings) error {
	return func(name string, s *schedule.Settings) error {
		encoded := s.UnreadableInput
		if encoded == nil {
			encoded = s.EncodedInput // this engine has no codec
		}
		if err := payload.Problem(encoded); err != nil { // Input only shows the size
			return fmt.Errorf("the input of schedule %q: %w", name, err)
		}
		if s.GroupKey == "" {
			return nil
		}
		read := e.queueRows.LatestReading()
		if read != nil {
			if row, found := read.ByName[s.Queue]; found && !row.Deleted {
				return nil
			}
		}
		if read == nil || read.ReadFailed || read.ReadBegan.Before(since) {
			return fmt.Errorf("%w: the settings of queue %q cannot be read: %w", schedule.ErrUnchecked, s.Queue, store.ErrUnavailable)
		}
		return fmt.Errorf("%w: schedule %q has the GroupKey %q in queue %q, which has no settings: create them with SetQueue, start a worker whose Config.QueueSettings declares them, or leave GroupKey out",
			ErrInvalidConfig, name, s.GroupKey, s.Queue)
	}
}

// reportScheduleFires logs and counts committed fires, and wakes the claim loop for the runs.
func (e *Engine) reportScheduleFires(ctx context.Context, w *store.ScheduleWrite) {
	started := false
	for i := range w.Fires {
		f := &w.Fires[i]
		late := time.Duration(-1)
		if f.Kind == store.FireScheduled && f.RunToStart != nil {
			late = max(0, f.FiredAt.Sub(f.At))
		}
		e.telemetry.CountScheduleFire(ctx, f.Schedule, f.Outcome.String(), late)
		attrs := []any{telemetry.KeySchedule, f.Schedule, telemetry.KeyScheduledAt, f.At}
		switch f.Outcome {
		case store.FireStarted:
			if f.RunToStart != nil {
				started = true
				e.telemetry.CountStart(ctx, f.RunToStart.Run.Workflow, f.RunToStart.Run.Queue)
				e.telemetry.Log.Debug("a schedule started a run", append(attrs, telemetry.KeyRun, f.Run.UUID)...)
			}
		case store.FireFailed:
			e.telemetry.Log.Warn("a scheduled time is passed: a run with its ID exists already", append(attrs, telemetry.KeyRun, f.Run.UUID)...)
		case store.FireMissed:
			e.telemetry.Log.Warn("scheduled times are passed: they are longer ago than CatchUp; Backfill starts their runs", attrs...)
		default:
			e.telemetry.Log.Info("a scheduled time starts no run now: the run before it has not ended", append(attrs, telemetry.KeyOutcome, f.Outcome.String())...)
		}
	}
	if started {
		e.worker().wakeLoops()
	}
}

// declareSchedules records the schedules that this process declares, unless other declarations take precedence.
func (w *worker) declareSchedules(ctx context.Context) error {
	var live map[string]bool
	var errs []error
	for _, d := range w.e.cfg.Schedules {
		own := &schedule.Declaration{Settings: d.Settings, Version: w.e.programVersionIfOrdered(), Started: w.comparableStartTime(w.e.clock.Now()), Live: live}
		row, err := w.e.store.ScheduleByName(ctx, d.Name)
		if err == nil && row != nil {
			if s, err := schedule.DecodeState(row); err == nil && own.IsRecorded(s) {
				continue
			}
		}
		if live == nil && err == nil {
			if err := w.e.checkNoOlderWorkers(ctx, workerLoopCaller, "schedules"); err != nil {
				return err
			}
			live, err = w.versionsOfOtherWorkers(ctx)
			own.Live = live
		}
		if err == nil {
			var refused error
			err = w.e.store.ChangeSchedule(ctx, &store.ScheduleChangeRequest{Name: d.Name, Plan: func(s store.ScheduleSnapshot) (write *store.ScheduleWrite) {
				write, refused = schedule.PlanDeclare(d.Name, s.Row, own, w.e.clock.Now())
				return write
			}})
			err = errors.Join(err, refused)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("declare schedule %q: %w", d.Name, err))
		}
	}
	return errors.Join(errs...)
}

// versionsOfOtherWorkers returns the versions of the other workers that live.
func (w *worker) versionsOfOtherWorkers(ctx context.Context) (map[string]bool, error) {
	workers, err := w.e.liveWorkers(ctx)
	live := make(map[string]bool)
	for i := range workers {
		if other := &workers[i]; other.ID != w.id && other.State == store.WorkerRunning {
			live[versionIfOrdered(other.Version)] = true
		}
	}
	return live, err
}

// changeScheduleAsOperator changes one schedule in one transaction, and logs what the operator has done.
func (e *Engine) changeScheduleAsOperator(ctx context.Context, name string, c store.OperatorChange, plan func(store.ScheduleSnapshot) (*store.ScheduleWrite, error)) error {
	err := e.changeSchedule(ctx, name, store.ActorAndReason{Actor: c.By, Reason: c.Reason}, plan)
	if err == nil {
		e.logOperatorChange(telemetry.KeySchedule, name, c)
	}
	return err
}

// changeSchedule changes one schedule in one transaction.
func (e *Engine) changeSchedule(ctx context.Context, name string, act store.ActorAndReason, plan func(store.ScheduleSnapshot) (*store.ScheduleWrite, error)) error {
	var refused error
	change := &store.ScheduleChangeRequest{Name: name, ActorAndReason: act, Plan: func(s store.ScheduleSnapshot) (w *store.ScheduleWrite) {
		w, refused = plan(s)
		return w
	}}
	if err := e.commitScheduleChange(ctx, change); err != nil {
		return err
	}
	return refused
}

// commitScheduleChange commits a change for a user of the engine. It retries for Config.Patience.
func (e *Engine) commitScheduleChange(ctx context.Context, change *store.ScheduleChangeRequest) error {
	if err := e.CheckOutsideTx(ctx, "a change of a schedule"); err != nil {
		return err
	}
	if err := e.readClockBeforeWrite(ctx, userCaller); err != nil {
		return err
	}
	change.ActorAndReason.At = e.clock.Now()
	if err := e.commitInSeparateTx(ctx, userCaller, func() error { return e.store.ChangeSchedule(ctx, change) }); err != nil {
		return err
	}
	if change.AppliedWrite != nil {
		e.reportScheduleFires(ctx, change.AppliedWrite)
		if w := e.worker(); w != nil {
			w.scheduleHints.Notify()
		}
	}
	return nil
}
