//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// The signals that stop a postmaster.
var stopSignals = map[Mode]os.Signal{
	Smart:     syscall.SIGTERM,
	Fast:      syscall.SIGINT,
	Immediate: syscall.SIGQUIT,
}

// account is the user that the server runs as. A nil account is the user of this process.
type account struct{ uid, gid int }

// serverAccount returns the account for the server. If this process runs as root, it is another user,
// because PostgreSQL refuses to run as root.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 == nil && err2 == nil {
			return &account{uid, gid}, nil
		}
	}
	return nil, fmt.Errorf("PostgreSQL refuses to run as root, and this machine has neither user postgres nor nobody: run the tests as another user")
}

// childAttributes returns the attributes of a child that runs as the account and dies with this process.
func childAttributes(a *account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	dieWithParent(attr)
	return attr
}

// lockFile takes an exclusive lock, which the kernel releases when this process dies.
func lockFile(f *os.File, wait bool) error {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	return syscall.Flock(int(f.Fd()), how)
}

// ownedByUs reports whether the file belongs to the user of this process.
func ownedByUs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

func stopProcess(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

func killProcess(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }

func continueProcess(pid int) error { return syscall.Kill(pid, syscall.SIGCONT) }

// children returns the running child processes of pid.
func children(pid int) (all []int) {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 2 && fields[1] == strconv.Itoa(pid) {
			if child, err := strconv.Atoi(fields[0]); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}
