package store

import "sync"

// ValueSharer is a Store that keeps values which all engines of this process share that use it.
type ValueSharer interface {
	// SharedValue returns the value of the key. The first call with a key creates the value.
	SharedValue(key any, create func() any) any
}

// SharedValues implements Sharer for the stores that embed it. The zero value is ready for use.
type SharedValues struct {
	mu     sync.Mutex
	values map[any]any
}

// SharedValue implements Sharer.
func (s *SharedValues) SharedValue(key any, create func() any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, exists := s.values[key]
	if !exists {
		if s.values == nil {
			s.values = make(map[any]any)
		}
		value = create()
		s.values[key] = value
	}
	return value
}
