package engine

// runGoroutines says which goroutines of a run have returned. run.mu guards it. The methods do not take that
// mutex.
type runGoroutines struct {
	functionReturned bool          // the workflow function has returned
	allReturned      bool          // the function and its branches have returned; no more branches begin
	loggedLateCall   bool          // a call after the return was logged
	running          int           // branches and starts of children that have not returned
	lastReturned     chan struct{} // closed when running becomes zero; nil: nobody waits for that
}

// begin counts one more goroutine. It reports false if the run no longer waits for its goroutines.
func (g *runGoroutines) begin() bool {
	if g.allReturned {
		return false
	}
	g.running++
	return true
}

// end is called when a goroutine returns that was counted by begin.
func (g *runGoroutines) end() {
	if g.running--; g.running == 0 && g.lastReturned != nil {
		close(g.lastReturned)
		g.lastReturned = nil
	}
}

// returnedChan returns a channel that is closed when the last goroutine has returned. It returns nil if none is
// running. Only one caller may wait.
func (g *runGoroutines) returnedChan() <-chan struct{} {
	if g.running == 0 {
		return nil
	}
	g.lastReturned = make(chan struct{})
	return g.lastReturned
}
