// Package durable makes Go functions survive their process.
//
// A workflow is an ordinary function. Each of its durable calls, such as
// ctx.Step(name, fn), is recorded in a database that you already have, under a name that
// is unique in its run. When a process dies, another one executes the function again
// from its beginning: calls whose results are recorded answer them without running, and
// the first call that is not recorded is where the run goes on. There is no server.
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
//	   ├──────────┤ drained, or its process died
//	   ├─ waiting ┤ for a time, a signal or a child: in no memory until it comes
//	   └─ paused ─┘ by Pause, or because its process died again and again; until Resume
//
// Completed, failed, cancelled and expired absorb: nothing changes them. Pause, Resume,
// Cancel and Terminate reach a run and all its descendants, from any process.
//
// # Branches that end early
//
// Any and Quorum with CancelRest end the branches that have not won, and record whom they ended; AllOrCancel does so with
// the others when one has failed. From then
// on such a branch does nothing new: its calls that are not recorded return ErrCancelled, its Wait returns
// ErrCancelled, and the children that it started are cancelled, unless they are Detached. This is the
// same in every replay, also when what the branch waited for has come meanwhile. A step that
// succeeds although its context has ended is recorded, as with any cancel, and only the branch sees its value. What the
// branch registered with Compensate stays registered. Calls that a branch makes by another Ctx than its own are
// not the branch's.
//
// # Other runs, time, identities
//
// A workflow function calls no Engine: what it would do by one has a durable call of its own. Ctx.Signal sends a signal to
// another run, Ctx.Start starts a run that is no child, Ctx.SetTags labels its own run, Ctx.Now and Ctx.UUID return a time
// and an identity that every replay returns again. A child's handle has its ID, Signal and Cancel.
//
// Each of them takes effect once. The effect is written before the record of the call, under an identity that follows from
// the call: a signal's key, a run's ID. A process that dies between both leaves the effect to be found by the next one, also if the
// other run has ended meanwhile. What such a call could not do is a *StepError, the same in every replay. Where a run is
// cancelled, a call that is not recorded does nothing, unless it was under way.
//
// A run keeps the signals that it accepted and did not receive, when it ends too: RunInfo.Unreceived counts them, and the log
// tells of them. One that is sent later is refused.
//
// # Ending early
//
// A run that is cancelled, or whose Timeout is over, ends in three steps. Its Ctx ends, with
// ErrCancelled or ErrTimeout as the cause; calls that history does not answer return that
// error; the function returns. Then what Compensate registered is executed, the last one
// first. Then the run has ended, and the children that it left are cancelled, unless they
// are Detached. A run that is in no memory is executed again for this, up to where it
// was. Compensations also run when the function returns an error. A run whose time was over has
// expired then, unless it was cancelled meanwhile. Terminate ends a run at once, without all this.
//
// # What a step promises
//
// A step runs at least once, and never again once its result is recorded. AtMostOnce makes
// that zero times or once, and Verify asks what happened when nobody knows. The Tx
// functions of the stores make it exactly once, for writes in the same database. The
// value that a step answers on its first run is the one that decodes from its record, so
// that it equals what every replay will see; errors likewise.
//
// # Determinism
//
// What a workflow function does outside of durable calls must follow from its input and
// their results: no clock, no randomness, no map order, no global that changes. Put such
// things into a step. Names are keys, not positions, so goroutines, errgroup and
// loops are fine as long as every call has a name of its own; Map and Go give scopes. Code
// may change under a live run: a new step is executed, a removed one is no longer asked
// for; a call whose kind has changed, or whose recorded bytes no longer decode, is answered
// ErrDiverged.
//
// A step's function gets a context of its own, and makes no durable calls: they return ErrNestedStep, however
// deep in the function they are made. Do not hand the workflow's Ctx to goroutines that a step's function starts:
// a durable call that such a goroutine makes with the Ctx cannot be told from one of the workflow's, and is
// executed, but a replay, in which the step's function does not run, does not make it again.
//
// # Values
//
// Inputs, results and signals are kept as JSON (encoding/json/v2). Unexported fields are left
// out, and a struct that has no others is refused, as is what does not decode again, such as an
// interface with methods. In a value of type any, objects come back as map[string]any, and
// numbers as float64, but integers of 2^53 and more as int64 or uint64. Nil and empty slices and
// maps are kept apart; a time.Duration is its nanoseconds.
//
// # Leaving a process
//
// When a run must leave (its process drains, its lease is lost, it is paused, it waits for long), the
// Ctx ends, and every durable call answers ErrSuspended. Return it. Whatever the function
// returns then is ignored; the run goes on elsewhere, or later. Wait for goroutines of your own
// before you return: what they still do then is not recorded.
//
// A run waits for long when nothing that can be seen goes on in it. Code between two durable calls
// cannot be seen: put what takes longer than a tenth of a second, while another goroutine waits, into
// a step. A run that has left too early comes back, but only after Config.ParkAfter.
//
// # Errors
//
//	what happened                                     errors.Is or errors.As    what to do
//	a step's last attempt failed                      *StepError                decide, or return it
//	  ... by timeout, by panic                        ErrTimeout, ErrPanic
//	no signal came in time                            *StepError, ErrTimeout    decide, or choose Else...
//	a child failed or was cancelled                   *RunError                 decide, or return it
//	a call could not reach another run                *StepError, and one of    decide, or return it
//	                                                  ErrNotFound, *StateError, ErrIDConflict
//	the run is cancelled, or its branch is            ErrCancelled              return it
//	  ... by Terminate                                ErrTerminated as well
//	  ... and nobody knows if it took effect          ErrOutcomeUnknown         look outside, or use Verify
//	the run failed                                    *RunError                 the cause is in it
//	  ... and could not undo everything               ErrCompensation           look outside
//	the run leaves this process                       ErrSuspended              return it
//	a goroutine was not awaited by the function       ErrReturned               use Go, and Wait or All
//	one name twice in a scope                         ErrDuplicateStep          add the item's key, or use Map
//	a durable call inside a step                      ErrNestedStep             call it from the workflow
//	an engine call inside a Tx step (SQLite)          ErrInsideTx               use StartTx or SignalTx
//	history does not fit the code                     ErrDiverged               bring back the type, or rename
//	the ID is another start's                         ErrIDConflict             use another ID, or the same input
//	no such run                                       ErrNotFound
//	its state does not allow what was asked           *StateError, ErrState     the state is in it
//	a cursor of nowhere                               ErrInvalidCursor          begin with an empty one
//	a token that was forged, altered, or is another's ErrInvalidToken           refuse what came with it
//	Call without the workflow in Config               ErrNotRegistered          register it, or use Start
//	a name that cannot be one                         ErrInvalidName
//	options or a Config that cannot work              ErrInvalidConfig
//	a value without a faithful JSON form              ErrNotEncodable           change its type
//	a value over Config.MaxPayload                    ErrPayloadTooLarge        keep it elsewhere, pass its key
//	runtime.Goexit, or t.FailNow, in a function       ErrGoexit                 return an error instead
//	the database would not take a value               ErrRefused                change the value
//	another transaction holds a row or a name         ErrLocked, *WriteError    end that transaction, call again
//	the database rejects a statement                  ErrRejected, *WriteError  mend the database, call again
//	the database refuses a privilege                  ErrPermission             grant it, call again
//	Run while it runs already                         ErrRunning                one Run, or a second engine
//	the database is away for longer than Patience     ErrUnavailable            call again
//	the SQLite file was deleted, moved or replaced    ErrMoved               put it back, and restart
//	the store was closed                              ErrClosed
//	the schema is newer or older than the code        ErrSchema                 update, or migrate
//
// Sentinels of your own are found in replayed errors once they are given to RegisterError.
package durable
