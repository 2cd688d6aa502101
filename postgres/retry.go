package postgres

import (
	"context"
	"errors"

	"github.com/seed8ec063be/durable/internal/store"
)

// maxUnavailableTries bounds the tries of retryUnavailable.
const maxUnavailableTries = 10

// retryUnavailable calls write, and calls it again after a pause while it returns store.ErrUnavailable. It stops after maxUnavailableTries
// calls, or when ctx ends, and returns the last error.
func retryUnavailable(ctx context.Context, write func() error) error {
	wait := firstTxRetryDelay
	for try := 1; ; try++ {
		err := write()
		if err == nil || !errors.Is(err, store.ErrUnavailable) || try == maxUnavailableTries || !sleepJittered(ctx, wait) {
			return err
		}
		wait = min(2*wait, maxTxRetryDelay)
	}
}
