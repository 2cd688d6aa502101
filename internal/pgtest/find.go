package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// oldestMajorVersion is the first major version with UNIQUE NULLS NOT DISTINCT.
const oldestMajorVersion = 15

var errNoPostgres = errors.New("no PostgreSQL was found")

// findPrograms returns the folder with initdb and postgres. If there is none and this process may install
// packages, bindir installs PostgreSQL.
func findPrograms(ctx context.Context) (string, error) {
	dir, err := newestInstalled(ctx)
	if err == nil || !errors.Is(err, errNoPostgres) {
		return dir, err
	}
	if !canInstall() {
		return "", fmt.Errorf("%w in PG_BINDIR, /usr/lib/postgresql, pg_config --bindir or PATH: install PostgreSQL %d or newer"+
			" (Debian: apt-get install postgresql; macOS: brew install postgresql), name its folder in PG_BINDIR, or set DATABASE_URL", err, oldestMajorVersion)
	}
	if err := install(ctx); err != nil {
		return "", fmt.Errorf("%w, and installing it failed: %w", errNoPostgres, err)
	}
	return newestInstalled(ctx)
}

// newestInstalled returns the folder with the programs of the newest installed PostgreSQL. If PG_BINDIR is
// set, installed searches no other folder.
func newestInstalled(ctx context.Context) (string, error) {
	if dir := os.Getenv("PG_BINDIR"); dir != "" {
		major, err := version(ctx, dir)
		if err != nil {
			return "", fmt.Errorf("PG_BINDIR=%s: %w", dir, err)
		}
		if major < oldestMajorVersion {
			return "", fmt.Errorf("PG_BINDIR=%s is PostgreSQL %d: %d or newer is needed", dir, major, oldestMajorVersion)
		}
		return dir, nil
	}
	best, bestDir := 0, ""
	for _, dir := range candidates(ctx) {
		if major, err := version(ctx, dir); err == nil && major > best {
			best, bestDir = major, dir
		}
	}
	switch {
	case bestDir == "":
		return "", errNoPostgres
	case best < oldestMajorVersion:
		return "", fmt.Errorf("%w that is new enough: %s is version %d, and %d or newer is needed", errNoPostgres, bestDir, best, oldestMajorVersion)
	}
	return bestDir, nil
}

func candidates(ctx context.Context) []string {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is valid
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real // initdb searches for the other programs in the folder of the real file
		}
		dirs = append(dirs, filepath.Dir(path))
	}
	return dirs
}

var versionNumber = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// version returns the major version of the PostgreSQL in dir, which must contain both programs.
func version(ctx context.Context, dir string) (int, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0, err
	}
	match := versionNumber.FindSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("postgres --version says %q", out)
	}
	return strconv.Atoi(string(match[1]))
}
