package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// oldest is the first major version with UNIQUE NULLS NOT DISTINCT.
const oldest = 15

// programs is the folder of initdb and pg_ctl.
func programs() (string, error) {
	if dir := installed(); dir != "" {
		return dir, nil
	}
	if err := install(); err != nil {
		return "", err
	}
	if dir := installed(); dir != "" {
		return dir, nil
	}
	return "", missing("it was installed, and initdb is still not found")
}

func missing(why string) error {
	return fmt.Errorf("pgtest: no PostgreSQL %d or newer: %s: install the package postgresql, or set PG_BINDIR to the folder of initdb, or DATABASE_URL to a server where databases may be created", oldest, why)
}

// installed looks in the known places, newest version first.
func installed() string {
	var places []string
	if dir := os.Getenv("PG_BINDIR"); dir != "" {
		places = append(places, dir)
	}
	if found, err := filepath.Glob("/usr/lib/postgresql/*/bin"); err == nil {
		for i := len(found) - 1; i >= 0; i-- {
			places = append(places, found[i])
		}
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		places = append(places, strings.TrimSpace(string(out)))
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		places = append(places, filepath.Dir(path))
	}
	for _, dir := range places {
		if version(dir) >= oldest {
			return dir
		}
	}
	return ""
}

var number = regexp.MustCompile(`\d+`)

// version is the major version of the server in dir, zero if there is none.
func version(dir string) int {
	if _, err := os.Stat(filepath.Join(dir, "pg_ctl")); err != nil {
		return 0
	}
	out, err := exec.Command(filepath.Join(dir, "initdb"), "--version").Output()
	if err != nil {
		return 0
	}
	v, err := strconv.Atoi(number.FindString(string(out)))
	if err != nil {
		return 0
	}
	return v
}

// install brings PostgreSQL onto a Debian machine, without a cluster of its own.
func install() error {
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return missing("none is installed, and only root on Debian can have it installed by the tests")
	}
	if err := os.MkdirAll("/etc/postgresql-common", 0o755); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	const config = "/etc/postgresql-common/createcluster.conf"
	if _, err := os.Stat(config); os.IsNotExist(err) {
		if err := os.WriteFile(config, []byte("create_main_cluster = false\n"), 0o644); err != nil {
			return fmt.Errorf("pgtest: %w", err)
		}
	}
	for _, args := range [][]string{{"update", "-q"}, {"install", "-y", "-q", "--no-install-recommends", "postgresql"}} {
		cmd := exec.Command("apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return missing(fmt.Sprintf("apt-get %s: %v\n%s", args[0], err, out))
		}
	}
	return nil
}
