//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlite

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// openUnprivileged opens a file and returns the error, as a user whom permissions
// bind: for root, in another process.
func openUnprivileged(t *testing.T, path string) error {
	t.Helper()
	if os.Getuid() != 0 {
		s, err := openDatabase(path)
		if err == nil {
			err = s.Close()
		}
		return err
	}
	for folder := filepath.Dir(path); len(folder) > 1; folder = filepath.Dir(folder) {
		if err := os.Chmod(folder, 0o755); err != nil && folder != os.TempDir() {
			t.Skip(err)
		}
		if filepath.Dir(folder) == filepath.Clean(os.TempDir()) {
			break
		}
	}
	binary := filepath.Join(filepath.Dir(path), "helper")
	if err := os.Link(os.Args[0], binary); err != nil {
		text, err := os.ReadFile(os.Args[0])
		if err == nil {
			err = os.WriteFile(binary, text, 0o755)
		}
		if err != nil {
			t.Skip(err)
		}
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), helperEnv+"=open "+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	r, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		return errors.New(strings.TrimSpace(string(text)))
	}
	return nil
}
