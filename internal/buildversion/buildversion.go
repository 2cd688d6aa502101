// Package buildversion names the build of this program.
package buildversion

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

const (
	revisionLength = 12 // of the revision in a name, as in Go's pseudo-versions
	hashLength     = 12 // of the executable's hash in a name, in hexadecimal digits
)

// hashed is the name that NameWithHash has found; nil before its first call.
var hashed atomic.Pointer[string]

// KnownName returns the name of the build as far as it is known without reading the executable. It is empty if the
// name needs the executable's hash and nobody has called NameWithHash yet.
func KnownName() string {
	if name := hashed.Load(); name != nil {
		return *name
	}
	if name, complete := fromVCS(); complete {
		return name
	}
	return ""
}

// NameWithHash returns the name of the build: the time and the revision of the commit that it was built from, such as
// 20260102150405-0123456789ab. If the files had been modified, a hash of the executable is appended. The name of
// a build without such data is store.UnorderedVersionPrefix and the hash. NameWithHash reads the executable at its first call, if the
// name needs that. It returns an empty name if it needs the hash and the executable cannot be read.
var NameWithHash = sync.OnceValue(func() string {
	name, complete := fromVCS()
	if !complete {
		name = appendHash(name, executableHash())
	}
	hashed.Store(&name)
	return name
})

// appendHash returns the complete name of a build whose name needs the hash.
func appendHash(name, hash string) string {
	switch {
	case hash == "":
		return ""
	case name == "":
		return store.UnorderedVersionPrefix + hash
	}
	return name + "-" + hash
}

// fromVCS returns the name that the version control system gives the build, and whether it needs no hash.
var fromVCS = sync.OnceValues(func() (name string, complete bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	return buildName(info.Settings)
})

// buildName returns the name of a build with these settings, and whether it needs no hash.
func buildName(settings []debug.BuildSetting) (name string, complete bool) {
	of := make(map[string]string)
	for _, s := range settings {
		of[s.Key] = s.Value
	}
	revision := of["vcs.revision"]
	at, err := time.Parse(time.RFC3339, of["vcs.time"])
	if revision == "" || err != nil {
		return "", false
	}
	name = at.UTC().Format("20060102150405") + "-" + revision[:min(len(revision), revisionLength)]
	if of["vcs.modified"] == "true" {
		return name + "-modified", false
	}
	return name, true
}

// executableHash returns the first digits of the executable's hash, or an empty string if it cannot be read.
func executableHash() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))[:hashLength]
}
