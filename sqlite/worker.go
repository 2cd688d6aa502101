package sqlite

import (
	"context"

	"github.com/seed8ec063be/durable/internal/store"
)

// QuietWorker implements store.Store.
func (s *database) QuietWorker(ctx context.Context, c store.QuietWorkerRequest) (found bool, err error) {
	err = s.withWriteTx(ctx, "change a worker", func(x executor) error {
		n, err := x.exec(qWorkerQuiet, bindUUID(c.Worker), bindBool(!c.Resume), c.LastChange().Text())
		found = n > 0
		return err
	})
	return found, err
}
