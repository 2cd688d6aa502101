package pgtest

import (
	"math"
	"syscall"
)

// dieWithParent makes the kernel send the server the signal for an immediate shutdown when the thread
// that started it dies. startChild keeps that thread alive.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }

// freeBytes returns how many bytes this user may still write below dir.
func freeBytes(dir string) uint64 {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Bsize <= 0 {
		return 0
	}
	if size := uint64(fs.Bsize); fs.Bavail <= math.MaxUint64/size {
		return fs.Bavail * size
	}
	return math.MaxUint64
}
