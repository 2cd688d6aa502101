package buildversion

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable/internal/store"
)

func TestNamesOfBuilds(t *testing.T) {
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.time", Value: "2026-01-02T16:04:05+01:00"}, {Key: "vcs.modified", Value: modified}}
	}
	for _, c := range []struct {
		what     string
		settings []debug.BuildSetting
		name     string
		complete bool
		withHash string
		orders   bool
	}{
		{"a commit", vcs("false"), "20260102150405-0123456789ab", true, "20260102150405-0123456789ab-cafe", true},
		{"modified files", vcs("true"), "20260102150405-0123456789ab-modified", false, "20260102150405-0123456789ab-modified-cafe", true},
		{"no version control", nil, "", false, "executable-cafe", false},
	} {
		name, complete := buildName(c.settings)
		if name != c.name || complete != c.complete {
			t.Errorf("%s: %q, %v", c.what, name, complete)
		}
		if got := appendHash(name, "cafe"); got != c.withHash || store.IsOrderedVersion(got) != c.orders {
			t.Errorf("%s, with the hash: %q", c.what, got)
		}
		if got := appendHash(name, ""); got != "" {
			t.Errorf("%s, without a hash: %q", c.what, got)
		}
	}
}

// The executable of this test can be read, and its name stays the same.
func TestNameOfThisBuild(t *testing.T) {
	name := NameWithHash()
	if name == "" || name != KnownName() || name != NameWithHash() {
		t.Errorf("%q, then %q", name, KnownName())
	}
	if hash := executableHash(); len(hash) != hashLength || !strings.HasSuffix(name, hash) {
		t.Errorf("the hash %q is not in the name %q", hash, name)
	}
}
