package store

import "sync"

// ValueSharer is a Store that keeps values which all engines that use the store in this process share.
type ValueSharer interface {
	// GetOrCreateSharedValue returns the value with the given key. The first call of GetOrCreateSharedValue with a key creates the value.
	GetOrCreateSharedValue(key any, create func() any) any
}

// SharedValues implements ValueSharer for the stores that embed it. The zero value of SharedValues is ready for use.
type SharedValues struct {
	mu     sync.Mutex
	values map[any]any
}

// GetOrCreateSharedValue implements ValueSharer.
func (s *SharedValues) GetOrCreateSharedValue(key any, create func() any) any {
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
