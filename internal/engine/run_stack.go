package engine

import (
	"fmt"
	"strings"

	"github.com/seed8ec063be/durable/internal/stack"
)

// goroutineStackOf returns the stack of the goroutine that executes the run's function. It finds the goroutine by the run's address
// in the frame of run.callWorkflow. If there is no such goroutine, goroutineStackOf returns the stacks of all goroutines that execute
// a workflow function or a step.
func goroutineStackOf(r *run) string {
	workflow, step := stack.FunctionName((*run).callWorkflow), stack.FunctionName((*stepTask).callFunction)
	own := fmt.Sprintf("%s(%p", workflow, r)
	var stuck []string
	for _, text := range stack.All() {
		if strings.Contains(text, own) {
			return text
		}
		if strings.Contains(text, workflow) || strings.Contains(text, step) {
			stuck = append(stuck, text)
		}
	}
	return strings.Join(stuck, "\n\n")
}

// stepFrame is the name of the function that calls the function of every step.
var stepFrame = stack.FunctionName((*stepTask).callFunction)

// isInsideStep reports whether the calling goroutine is inside a step's function, at any depth of its stack.
func isInsideStep() bool { return stack.IsInside(stepFrame) }
