// Package durabletest tests workflows. A test gets a real engine, a temporary database, and a clock that skips the time in which
// the workflow only waits.
//
//	func TestCheckout(t *testing.T) {
//		e := durabletest.New(t, Checkout)
//		e.Use(durabletest.Stub("charge", func(context.Context) (Payment, error) { return Payment{Paid: true}, nil }))
//		if _, err := Checkout.Start(t.Context(), e.Engine, order, durable.ID("order-42")); err != nil {
//			t.Fatal(err)
//		}
//		e.Advance(72 * time.Hour) // takes milliseconds
//		e.AssertStepsCompleted("order-42", "charge", "ship")
//	}
//
// # Clock
//
// The engine has a clock of its own, which begins at the present time. The clock determines when sleeps end, when failed steps
// are retried, and when a Receive, a Timeout or a Delay is over. The clock also determines when the rate of a queue allows a
// run to begin, and the time at which a run was created.
//
// The clock stands still while a workflow or a step executes, except while its function waits in Run.Result for another run, with
// the context of the step or the Ctx of the workflow. There is an exception: while a branch of a run waits, the clock may move
// although the workflow function is blocked outside of a durable call, for example in a read from the network, because the
// package cannot see that the function does not wait too. Put such code into a step. The clock moves only while the test waits in
// Run.Result, Workflow.Call, [Engine.Advance] or [Engine.AdvanceUntil]. When all runs wait, the clock jumps to the earliest time
// at which something is due. Between two calls that move the clock, the clock stands still. A signal that the test sends between
// two calls that move the clock therefore arrives before the next timer ends. After [Engine.FreezeClock] the clock moves only in
// Advance and AdvanceUntil.
//
// The engine's clock does not change time.Now. Steps take real time, and AttemptTimeout is measured in real time. With the
// option [RealTime], the engine uses the database's clock instead.
//
// A run that waits for longer than Config.ParkAfter is unloaded from memory at once, and replayed when it is due. Every test
// with a long wait therefore also checks that the workflow is deterministic.
//
// The sweeps of Config.Retention begin after real time, so a test that only moves the clock sees none. To delete ended runs in a test, call
// Engine.DeleteAll.
//
// Leases do not expire in tests, because otherwise every jump of the clock would end them. [CrashEverywhere] tests what happens
// when a process dies.
//
// # Stubs
//
// [Stub] calls a function in place of a step's function. [FailFirst] makes the first attempts of a step fail. Pass Stub and
// FailFirst to [Engine.Use], [NewWithOptions] or [CrashEverywhere]. [Replacement.CallCount] returns how often a stub was called.
//
// # Crashes
//
// [CrashEverywhere] kills the process at each durable write of a run, and checks that the run has the same result each time:
//
//	func TestCheckoutSurvivesCrashes(t *testing.T) {
//		durabletest.CrashEverywhere(t, Checkout, order)
//	}
//
// # Replay
//
// [Replay] and [ReplayDir] execute the current code against histories that Engine.Export wrote in production. A test that
// replays exported histories finds changes of the code that live runs do not fit, before the changes are deployed.
//
// # What fails a test
//
//   - [Engine.AssertStepsCompleted], [Engine.AssertOnlyStepsCompleted], [Engine.AssertNotCalled] and [Engine.RequireStepFailed]
//     fail the test if the history of a run differs. The message of the failure lists the calls in the history.
//   - A stub whose step is never called fails the test, since its name is probably misspelled. The message lists the steps that
//     were called. See [Replacement.Optional]. The same holds for a name given to [VaryingSteps].
//   - Run.Result and Workflow.Call return an error if nothing can happen any more: nothing is due, and no other goroutine of
//     the test could act. The error of Run.Result names the signals, paused or held runs, or unregistered workflows that the
//     run waits for, and says why a run is paused or held. If the context of the call has a deadline within three seconds, the
//     call waits for this deadline instead, and the log of the test names what the run waits for.
//   - AdvanceUntil fails the test if its condition does not hold and nothing is due any more. AdvanceUntil also fails the test
//     if runs are only held again and again, for example because a queue has no settings.
//   - CrashEverywhere fails the test at the first difference. The message says at which write the process was killed, which run
//     and which step differ, and how.
//   - An option fails the test if it is passed to a function on which the option has no effect.
//
// If the clock stands still for three seconds of real time, the log of the test says what is executing, or when something is
// next due.
package durabletest
