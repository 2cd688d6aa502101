//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package sqlite

import "testing"

func openUnprivileged(t *testing.T, path string) error {
	t.Helper()
	s, err := Open(path)
	if err == nil {
		err = s.Close()
	}
	return err
}
