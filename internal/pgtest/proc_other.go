//go:build unix && !linux

package pgtest

import "syscall"

// dieWithParent has no equivalent here: a server whose test was killed stays until
// it is stopped by hand.
func dieWithParent(*syscall.SysProcAttr) {}

// free says nothing, so that files go to the ordinary temporary directory.
func free(string) uint64 { return 0 }
