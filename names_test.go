package durable_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// Calls that change queues and limits refuse wrong names before they ask the database, in texts of a readable length.
func TestNamesOfQueuesAndLimitsAreChecked(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		e := engineWith(t, s, durable.Config{})
		for _, name := range []string{"", "a\x00b", "\xff\xfe", "a\nb", strings.Repeat("x", 1<<20)} {
			for call, err := range map[string]error{
				"SetQueue":    e.SetQueue(within(t), name, durable.QueueSettings{}),
				"PauseQueue":  e.PauseQueue(within(t), name),
				"ResumeQueue": e.ResumeQueue(within(t), name),
				"DeleteQueue": e.DeleteQueue(within(t), name),
				"MoveToQueue": e.MoveToQueue(within(t), "run", name),
				"SetLimit":    e.SetLimit(within(t), name, durable.LimitBounds{}),
				"DeleteLimit": e.DeleteLimit(within(t), name),
			} {
				if !errors.Is(err, durable.ErrInvalidName) || len(err.Error()) > 1000 {
					t.Errorf("%s of the name %.20q returns %.300q", call, name, err)
				}
			}
		}
	})
}
