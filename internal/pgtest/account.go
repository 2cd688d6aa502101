package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the user that the server runs as: PostgreSQL refuses root.
type account struct {
	uid, gid uint32
	other    bool // another than this process's
}

func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return &account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &account{uid: uint32(uid), gid: uint32(gid), other: true}, nil
		}
	}
	return nil, fmt.Errorf("pgtest: PostgreSQL does not run as root, and there is neither a user postgres nor nobody: add one, or set DATABASE_URL")
}

// as makes the command run as the account.
func (a *account) as(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if a.other {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
		cmd.Env = append(os.Environ(), "HOME=/")
	}
	return cmd
}

// own gives the folder to the account.
func (a *account) own(dir string) error {
	if !a.other {
		return nil
	}
	if err := os.Chown(dir, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	return nil
}
