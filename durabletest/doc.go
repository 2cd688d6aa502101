// Package durabletest is what workflows are tested with: a real engine on a real, temporary
// database, in a time that the test moves; and tests that no one writes by hand, which end
// the process at every point where it can end.
//
//	func TestCheckout(t *testing.T) {
//		e := durabletest.New(t, Checkout)
//		e.Use(durabletest.FailFirst("charge", 2, errBusy))
//		run, err := Checkout.Start(t.Context(), e.Engine, order, durable.ID("order-42"))
//		...
//		e.Advance(72 * time.Hour) // three days pass in milliseconds
//		err = e.Signal(t.Context(), "order-42", "approved", true)
//		receipt, err := run.Result(t.Context())
//		e.Ran("order-42", "charge", "ship")
//	}
//
//	func TestCheckoutSurvives(t *testing.T) {
//		durabletest.CrashEverywhere(t, Checkout, order)
//	}
//
// # Time
//
// An engine of New has a clock of its own for everything that the database's clock decides:
// sleeps, waits between attempts, the deadlines of Receive, Timeout, Delay, and when a run
// is created. It stands still while anything executes. It moves only while the test
// waits: in Run.Result, Workflow.Call, Advance or Until. Then, whenever all that is left to do is to wait,
// it jumps to the next time at which something is due, in order, however far that is. So
// what a test does between two such calls, such as sending a signal, is done before time
// passes, and a test without them sees none pass.
//
// A wait for a result that cannot come ends with an error at once: when nothing is due any more, and
// the test has no other goroutine that could still do something. The error names what is awaited: a signal,
// a paused run, a workflow that no engine of the test executes. A wait whose context ends within three seconds is
// left to that.
//
// A run that waits for longer than Config.ParkAfter leaves memory at once, and is
// executed again, with its history, when its time has come: a workflow that is not
// deterministic shows in an ordinary test.
//
// Steps that really take time take it, and AttemptTimeout bounds it in real time. Nothing
// else that the engine does is simulated: the database, its transactions and the engine
// are those of production. time.Now, in the test or in a step, is the real time, at which
// the clock also begins.
//
// # Leases
//
// A lease that is measured by a clock which jumps would end by a jump, so leases do not
// end: a run is taken from an engine that is gone by looking (see CrashEverywhere), not
// by waiting. RealTime gives the engine the database's clock, and leases, back.
package durabletest
