package startkey

import "github.com/seed8ec063be/durable/internal/store"

// ReplaceCallIDs returns the state of a row with f(id) in place of each identity of a step's start. An identity contains a hash of the
// start's input, so a store that encodes payloads encodes it too.
func ReplaceCallIDs(row *store.StartKeyRow, f func(id string) (string, error)) ([]byte, error) {
	s, err := decode(row)
	if err != nil || len(s.Calls) == 0 {
		return row.State, err
	}
	for i := range s.Calls {
		if s.Calls[i].ID, err = f(s.Calls[i].ID); err != nil {
			return row.State, err
		}
	}
	return s.encode(), nil
}
