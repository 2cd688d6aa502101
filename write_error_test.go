package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// refusesQueues is a store that refuses the settings of queues.
type refusesQueues struct{ durable.Store }

func (s *refusesQueues) ChangeQueue(context.Context, store.QueueChangeRequest) error {
	return fmt.Errorf("%w: too long", store.ErrBadData)
}

// A value that the database refuses was not written, and the error says so.
func TestARefusedValueWasNotWritten(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		e := engineOn(t, &refusesQueues{s})
		err := e.SetQueue(within(t), "mail", durable.QueueSettings{MaxExecuting: 1})
		failed, is := errors.AsType[*durable.WriteError](err)
		if !is || failed.MayHaveCommitted || !errors.Is(err, store.ErrBadData) || !strings.Contains(err.Error(), "nothing was written") {
			t.Errorf("got %v", err)
		}
	})
}
