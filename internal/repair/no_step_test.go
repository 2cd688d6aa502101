package repair

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable/internal/naming"
)

// A repair of a call that the history does not have says which call was perhaps meant, or which there are.
func TestAnUnknownStepSuggestsAName(t *testing.T) {
	slashes := failedRun(t, "", "step item-acme%2Fx1%2Fa completed", "step branch/kid completed", "step fee failed", "compensation refund completed")
	var long []string
	for i := range 30 {
		long = append(long, fmt.Sprintf("step s%d completed", i))
	}
	for _, c := range []struct {
		h           *history
		given, want string
	}{
		{slashes, "item-acme/x1/a", `: did you mean "item-acme%2Fx1%2Fa"?`},
		{slashes, "kid", `: did you mean "branch/kid"?`},
		{slashes, "branch", `: it is a scope: name one of its calls: "branch/kid"`},
		{slashes, "free", `: it has "item-acme%2Fx1%2Fa", "branch/kid", "fee"`},
		{slashes, "refund", `"refund" is a compensation, which a repair cannot name: with From, name the step that it undoes; if the repaired run fails too, its compensations are executed again`},
		{failedRun(t, "", "step a%2Fb completed", "step a/b completed", "step x/c completed", "step y/c completed"), "c", `: did you mean one of "x/c", "y/c"?`},
		{failedRun(t, ""), "a", `: it has no call yet`},
		{failedRun(t, "", long...), "x", `"s9" and 20 others`},
		{drawn(t, "", all...), "left", `: it is a node: name one of its calls: "left/step"`},
		{drawn(t, "", "step list/step completed"), "lift", `: it has "list/step"`},
		{drawn(t, "", all...), "left/failure", `: name one of the calls of the node "left": "left/step"`},
		{drawn(t, "", "step list/step completed"), "left/step", `: nothing of the node "left" is recorded, because the node has not begun, or was skipped or cancelled: wait until it has begun, or name a call of a node that it needs`},
		{drawn(t, "", "step list/step completed"), "left", `: it is a node, and nothing of it is recorded`},
	} {
		q := laterRequest()
		name := naming.ParseDisplay(c.given)
		_, override := PlanOverride(&c.h.RunToRepair, q, name, []byte("1"))
		_, skip := PlanSkip(&c.h.RunToRepair, q, name, []byte("1"))
		_, rerun := PlanRerun(&c.h.RunToRepair, q, name)
		q.FromEnd = true
		_, fork := PlanFork(&c.h.RunToRepair, q, map[string][]byte{name: []byte("1")})
		for _, err := range []error{override, skip, rerun, fork} {
			if !errors.Is(err, ErrNoStep) || !strings.HasSuffix(err.Error(), fmt.Sprintf("%q is not in its history", c.given)+c.want) && !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%q: %v, and not %s", c.given, err, c.want)
			}
		}
	}
}
