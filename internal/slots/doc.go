// Package slots bounds how much one process executes at once.
//
// [Pool] bounds the runs of a worker, and [StepPool] bounds the functions of steps. Both count their slots,
// queue the callers that wait for a slot, and notify them in the order of their requests.
//
// The holder of a slot may wait for something that needs a slot of the same process. So that the two do
// not wait for each other forever, a holder lends its slot while it waits.
//
// The package knows nothing of runs, workers or stores. It imports only the standard library.
//
// Lock order: a Pool and a StepPool have one mutex each, which also guards the fields of their slots. The
// package calls no function of its user and takes no other lock while it holds one of them. So users may
// call every method of the package while they hold locks of their own.
package slots
