package pgtest

import (
	"math"
	"syscall"
)

// dieWithParent has the kernel send the server an immediate shutdown when the thread
// that started it dies: see own, which keeps that thread.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }

// free is how many bytes this user may still write below dir.
func free(dir string) uint64 {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Bsize <= 0 {
		return 0
	}
	if size := uint64(fs.Bsize); fs.Bavail <= math.MaxUint64/size {
		return fs.Bavail * size
	}
	return math.MaxUint64
}
