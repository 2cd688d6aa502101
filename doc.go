// Package durable executes Go functions that continue in another process when their process dies. The library needs a database,
// but no server of its own.
//
// A workflow is an ordinary function. Each durable call of a workflow, such as [Ctx.Step], is recorded in your own database,
// under a name that is unique in the run. When a process dies, another process executes the function again from the beginning.
// Recorded calls return their recorded results, and are not executed again. The run continues at the first call that is not
// recorded.
//
//	var Checkout = durable.Define("checkout", func(c *durable.Ctx, o Order) (Receipt, error) {
//		payment, err := c.Step("charge", func(ctx context.Context) (Payment, error) {
//			return bank.Charge(ctx, o, durable.IdempotencyKey(ctx))
//		}, durable.Retry(durable.Exponential(time.Second, time.Minute, 5)))
//		if err != nil {
//			return Receipt{}, err
//		}
//		return c.Step("ship", func(ctx context.Context) (Receipt, error) { return ship(ctx, o, payment) })
//	})
//
//	store, err := sqlite.Open("shop.db") // or postgres.Open(ctx, url)
//	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{Checkout}})
//	go engine.Run(ctx)
//	run, err := Checkout.Start(ctx, engine, order, durable.ID("order-42"))
//	receipt, err := run.Result(ctx)
//
// # States of a run
//
//	pending ─► running ─► completed | failed | cancelled | expired
//	   ▲          │
//	   ├──────────┤ released by a process that stops, or taken over from one that died
//	   ├─ waiting ┤ for a time, a signal or a child; the run is not in memory
//	   └─ paused ─┘ by Pause, or because it repeatedly killed its process; until Resume
//
// Completed, failed, cancelled and expired are final: a run in one of these states never changes. [Engine.Pause],
// [Engine.Resume], [Engine.Cancel] and [Engine.Terminate] act on a run and all its descendants, and can be called in any
// process.
//
// # Determinism
//
// Outside of durable calls, a workflow function must depend only on its input and on the results of durable calls. A workflow
// function must not use the clock, random numbers, the order of a map, or global state that changes. Put code that is not
// deterministic into a step, or use [Ctx.Now] and [Ctx.UUID].
//
// The library finds the record of a call by the call's name, and not by its position. Loops, goroutines and errgroup are
// therefore allowed, if every call has a name of its own within its scope. [Ctx.Map] and [Ctx.Go] open scopes of their own.
//
// The code may change while runs are live. Declare changes of the code with [Renamed], [Retired] and [Ctx.Patched]. A durable
// call that does not fit the history of the run returns [ErrDiverged]. The calls that do not fit are:
//
//   - a call whose kind has changed, or whose recorded result does not decode
//   - a choice whose branches differ from the recorded ones
//   - a child of another workflow than the recorded one
//   - a new call, while the code has not made all calls that are recorded
//
// A run with a call that does not fit is held until a worker starts whose code fits the history of the run; see [OnDrift].
//
// The function of a step gets a context of its own and must not make durable calls. Durable calls inside a step's function
// return [ErrNestedStep]. Do not pass the workflow's Ctx to goroutines that a step's function starts. The library cannot
// distinguish the durable calls of such a goroutine from the durable calls of the workflow, and a replay does not repeat them,
// because it does not execute the step's function.
//
// # Guarantees of a step
//
// A step is executed at least once, and not again after its result is recorded, unless an operator repairs the run. With
// [AtMostOnce] a step is executed at most once, and [Verify] finds out what happened if the process of the step died. The Tx
// functions of packages postgres and sqlite commit the writes of a step together with its record, so that the writes take
// effect exactly once.
//
// A step always returns the value or the error that its record decodes to, even when its function has just been executed. The
// first execution and every replay therefore get the same value or error.
//
// # Values
//
// Inputs, results and signals are encoded as JSON by encoding/json/v2. Unexported fields of a struct are left out.
// [ErrNotEncodable] is returned for a struct that has only unexported fields, and for a value that does not decode again, such
// as an interface with methods. In a value of type any, objects decode to map[string]any and numbers to float64; integers of
// 2^53 and more decode to int64 or uint64. Nil and empty slices and maps stay distinct. A time.Duration is encoded as
// nanoseconds.
//
// # Waiting, and leaving a process
//
// A run that only waits is unloaded from memory. A run also leaves its process when the process stops, when the run's lease is
// lost, and when the run is paused. When a run leaves its process, its Ctx ends, and every durable call returns [ErrSuspended].
// A workflow function should return ErrSuspended when it gets that error. The library ignores what the function of a suspended
// run returns, and the run continues later, possibly in another process. Wait for your own goroutines before the workflow
// function returns, because durable calls after its return are not recorded.
//
// A run is unloaded from memory when all its goroutines that make durable calls are waiting. The library cannot see whether
// code is executing between two durable calls. If other goroutines of the run may be waiting, put code that takes longer than
// 100 ms into a step. A run that was unloaded too early is loaded again after Config.ParkAfter (5 s by default).
//
// # Cancelling, timeouts and compensation
//
// A run that is cancelled, or whose [Timeout] is over, ends in this order:
//
//  1. The Ctx of the run ends, with [ErrCancelled] or [ErrTimeout] as the cause. Durable calls that are not recorded return
//     ErrCancelled or ErrTimeout.
//  2. The workflow function returns.
//  3. The compensations that [Ctx.Compensate] registered are executed, the last registered first. The compensations of a run
//     are also executed when its workflow function returns an error.
//  4. The run gets the status cancelled or expired. The children of the run are cancelled, unless they are [Detached].
//
// A cancelled or expired run that is not in memory is first replayed, so that its compensations are registered again. If the
// run was in a [Ctx.Sleep], and the end of the sleep passes before a worker executes the run, the Sleep returns no error. The
// compensations that the code registers between this Sleep and its next durable call are then executed too. So register only
// compensations that do no harm if their steps did not take effect. [Engine.Terminate] ends a run at once, without executing
// its function or its compensations.
//
// # Branches that a choice ends
//
// [Any] and [Quorum] with [CancelLosers] end the branches that did not win. When one branch of an [AllOrCancel] fails,
// AllOrCancel ends its other branches. Any, Quorum and AllOrCancel record which branches they ended.
//
// In an ended branch, calls that are not recorded return [ErrCancelled], and the contexts of running steps end. If a running
// step of an ended branch succeeds nevertheless, its value is recorded, and the branch continues with the value.
//
// If any call of an ended branch returned ErrCancelled, [Future.Wait] returns ErrCancelled, whatever the branch itself
// returned. If no call of the branch returned ErrCancelled, Wait returns the result of the branch. Future.Wait returns the same
// result in every replay.
//
// The children that an ended branch started are cancelled, unless they are [Detached]. Compensations that an ended branch
// registered stay registered. A durable call belongs to the branch whose Ctx the code uses for the call. The methods of a handle
// belong to the branch in which the handle was made: a choice that ends another branch does not end a [Child.Wait] or a
// [Callback.Wait] there.
//
// # Other runs
//
// A workflow function must not start or change other runs through the [Engine]; the function makes durable calls instead.
// [Ctx.Child] and [Ctx.StartChild] start children, [Ctx.Start] starts a run that is not a child, [Ctx.Signal] sends a signal to
// another run, and [Ctx.SetTags] sets the tags of its own run. The handle of a child has the methods Signal and Cancel.
//
// A durable call to another run takes effect once, even if the process dies after the effect and before the call is recorded.
// If the other run refuses the call, for example because the other run has ended, the refusal is recorded as a [*StepError],
// which every replay returns.
//
// A run keeps the signals that it has not received, even after its end. RunInfo.Unreceived counts the signals that a run has
// not received. A worker logs a warning if a run has ended with signals that it never received. A signal to a run that has
// ended is refused.
//
// # Errors
//
//	what happened                                     errors.Is or errors.As    what to do
//	a step's last attempt failed                      *StepError                handle it, or return it
//	  ... by timeout, by panic                        ErrTimeout, ErrPanic
//	  ... and it is unknown if it took effect         ErrOutcomeUnknown         check outside, or use Verify
//	no signal came in time                            *StepError, ErrTimeout    handle it, or use an Else option
//	a child failed or was cancelled                   *RunError                 handle it, or return it
//	a call could not reach another run                *StepError, and one of    handle it, or return it
//	                                                  ErrNotFound, *StateError, ErrIDConflict
//	the run is cancelled, or its branch is            ErrCancelled              return it
//	  ... by Terminate                                ErrTerminated as well
//	the run failed                                    *RunError                 read the cause, which it wraps
//	  ... and not all of its effects were undone      ErrCompensation           check what was not undone
//	the run leaves this process                       ErrSuspended              return it
//	a goroutine called after the function's return    ErrReturned               use Go, and Wait or All
//	one name twice in a scope                         ErrDuplicateStep          add the item's key, or use Map
//	a durable call inside a step                      ErrNestedStep             call it from the workflow
//	an engine call inside a Tx step (SQLite)          ErrInsideTx               use StartTx or SignalTx
//	the code does not fit the history                 ErrDiverged               restore the old call: the run is held until then
//	the ID belongs to another start                   ErrIDConflict             use another ID, or the same input
//	the queue has no room                             ErrQueueFull              start later, or raise its Depth
//	the queue takes no starts                         ErrQueueClosed            use another, or open it
//	a run with the key of a Singleton is live         *LiveError, ErrLive       wait for its end, or replace it
//	a Throttle skipped the start                      ErrThrottled              start again when its ThrottledError says
//	no such run                                       ErrNotFound               check the ID
//	the run's state does not allow the operation      *StateError, ErrState     read its Status
//	Retry does not know from which step               ErrFromRequired           give it From or FromEnd
//	the run has not recorded the step                 ErrNoStep                 read the names in its History
//	Override with a value of another JSON type        ErrValueType              pass a value of the step's type
//	a run of no graph, or an unknown node             ErrNoGraph                check the ID
//	a node read what it does not need                 ErrUndeclaredNeed         declare the need
//	the run can continue with another input           ErrContinueAsNew          return it
//	the cursor is not of this database                ErrInvalidCursor          begin with an empty cursor
//	a forged or altered token                         ErrInvalidToken           refuse the request
//	Call without the workflow in Config               ErrNotRegistered          register it, or use Start
//	an invalid name or ID                             ErrInvalidName            read the error: it names the rule
//	invalid options or Config                         ErrInvalidConfig          read the error: it names the option
//	a value that JSON cannot represent                ErrNotEncodable           change its type
//	a value larger than Config.MaxPayload             ErrPayloadTooLarge        store it elsewhere, record its key
//	runtime.Goexit, or t.FailNow, in a function       ErrGoexit                 return an error instead
//	the database refuses a value                      ErrRefused                change the value
//	another transaction locks a row or a name         ErrLocked, *WriteError    end that transaction, call again
//	the database rejects a statement                  ErrRejected, *WriteError  repair the database, call again
//	the database refuses a privilege                  ErrPermission             grant it, call again
//	Run was called twice                              ErrRunning                call Run once, or make a second engine
//	a health check failed                             ErrNotReady               read the error: it says why
//	the database is unavailable longer than Patience  ErrUnavailable            call again
//	the SQLite file was deleted, moved or replaced    ErrMoved                  restore it, and restart
//	the store was closed                              ErrClosed                 open it again
//	the schema is newer or older than the code        ErrSchema                 update, or migrate
//	a live older worker would ignore the setting      ErrSchema                 update that worker
//
// Register your own sentinel errors with [RegisterError], so that errors.Is finds them in replayed errors.
package durable
