//go:build unix && !linux

package pgtest

import "syscall"

// dieWithParent does nothing on this system. If the test process is killed, the server continues to
// run until somebody stops it.
func dieWithParent(*syscall.SysProcAttr) {}

// freeBytes returns zero, so that files are created in the ordinary temporary directory.
func freeBytes(string) uint64 { return 0 }
