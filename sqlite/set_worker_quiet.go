package sqlite

import (
	"context"

	"github.com/seed8ec063be/durable/internal/store"
)

// SetWorkerQuiet implements store.Store.
func (s *database) SetWorkerQuiet(ctx context.Context, c store.SetWorkerQuietRequest) (found bool, err error) {
	err = s.withWriteTx(ctx, "change a worker", func(x executor) error {
		n, err := x.exec(qWorkerSetQuiet, bindUUID(c.Worker), bindBool(!c.Resume), c.OperatorChange().EncodeJSON())
		found = n > 0
		return err
	})
	return found, err
}
