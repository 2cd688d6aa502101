// Package realtime has the one way in which tests of this module let real time pass.
//
// Tests wait for a state: a signal of the code, a row of the database, the end of a call. They
// use the test clock of package durabletest, or testing/synctest, where time itself matters. What
// remains is a step whose work takes time, a race that needs a different moment in each
// round, and the proof that nothing happens: for these there is Pass, with the reason in the
// call. Package lint finds every other wait.
//
// The library never imports this package.
package realtime

import "time"

// Pass returns when d is over. The reason is for the reader: it says why no state can be awaited
// instead. It is a literal of at least three words, which package lint checks.
func Pass(d time.Duration, reason string) {
	_ = reason
	time.Sleep(d)
}
