package durablecli_test

import (
	"testing"

	"github.com/seed8ec063be/durable"
)

// A line of standard input is an ID as it is: only the end of the line is removed, because IDs may begin and end with spaces.
func TestIDsOfStandardInputAreExact(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e := p.client(t)
		for _, id := range []string{"a-1", "a-1 ", " a-2"} {
			start(t, e, order, id, "book")
		}
		runOn(t, e, 0, "a-1 \r\n\r\n a-2\n", "cancel", "-")
		for id, want := range map[string]durable.Status{"a-1": durable.StatusPending, "a-1 ": durable.StatusCancelled, " a-2": durable.StatusCancelled} {
			if got := status(t, e, id); got != want {
				t.Errorf("%q is %s", id, got)
			}
		}
	})
}
