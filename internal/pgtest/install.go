package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// firstTempDir is the folder for temporary files that all processes have in common, before InMemory changes it.
var firstTempDir = os.TempDir()

func canInstall() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && os.Geteuid() == 0
}

// install installs PostgreSQL from Debian's archive, without the cluster that the package creates and
// starts by default. If several test binaries call it at the same time, one of them installs, and the
// others wait.
func install(ctx context.Context) error {
	lock, err := os.OpenFile(filepath.Join(firstTempDir, "pgtest-install.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lockFile(lock, true); err != nil {
		return err
	}
	if _, err := newestInstalled(ctx); !errors.Is(err, errNoPostgres) {
		return err
	}
	if err := noCluster("/etc/postgresql-common"); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "pgtest: installing PostgreSQL with apt-get")
	for _, args := range [][]string{
		{"update", "-q"},
		{"install", "-q", "-y", "--no-install-recommends", "postgresql"},
	} {
		options := []string{"-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Options::=--force-confold"}
		cmd := exec.CommandContext(ctx, "apt-get", append(options, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, tail(out))
		}
	}
	return nil
}

// noCluster configures Debian's package to create no cluster. It does not change existing settings.
func noCluster(dir string) error {
	name := filepath.Join(dir, "createcluster.conf")
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte("create_main_cluster = false\n"), 0o644)
}
