package storetest

import (
	"bytes"
	"sync"

	"github.com/seed8ec063be/durable/internal/store"
)

var tokens = []test{
	{"the key is one, however many ask for it first", tokenKeyIsOne},
}

// tokenKeyIsOne calls TokenSigningKey for the first time in several goroutines at once.
func tokenKeyIsOne(b *fixture) { tokenKeys(b, b.store) }

// tokenKeys calls TokenSigningKey several times at once on each of the handles of one database.
func tokenKeys(b *fixture, handles ...store.Store) {
	keys := make([][]byte, 8*len(handles))
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			var err error
			if keys[i], err = handles[i%len(handles)].TokenSigningKey(b.ctx); err != nil {
				b.Errorf("TokenSigningKey: %v", err)
			}
		})
	}
	all.Wait()
	for _, key := range keys {
		if len(key) != 32 || !bytes.Equal(key, keys[0]) || bytes.Equal(key, make([]byte, 32)) {
			b.Fatalf("TokenSigningKey returned %x and %x", keys[0], key)
		}
	}
}
