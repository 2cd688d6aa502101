package naming

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A name that passes is one that every database keeps, and that no scope imitates.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"", "a", "team.owner", ".", "a.", "\x1f", "a\x7f", "\u0085", "\xff", "a\x00", strings.Repeat("é", 256), strings.Repeat("x", 513), "%s", "'; --", " "} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		err := Check("step", name)
		fit := name != "" && len(name) <= MaxName && utf8.ValidString(name) && !strings.ContainsFunc(name, func(c rune) bool { return c < 0x20 || c == 0x7f })
		if (err == nil) != fit || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("the name %q: %v", name, err)
		}
		for _, full := range []string{name, name + Separator + value, value + Separator + name} {
			if back := ParseDisplay(Display(full)); back != full || strings.Contains(Display(full), Separator) {
				t.Errorf("the name %q is shown as %q, and read as %q", full, Display(full), back)
			}
		}
		if err == nil && (strings.Contains(name, Separator) || DisplaySignal(name) != name || strings.ContainsRune(Display(name), '/')) {
			t.Errorf("the name %q is shown as %q", name, Display(name))
		}
		if err != nil && !utf8.ValidString(err.Error()) {
			t.Errorf("the error of %q is not text", name)
		}
		if err := CheckTag(name, value); err == nil && (Check("tag", name) != nil || Check("value", value) != nil || !strings.Contains(name, ".")) {
			t.Errorf("the tag %q = %q passes", name, value)
		}
		if err := CheckText("reason", value); err == nil && (!utf8.ValidString(value) || strings.ContainsRune(value, 0) || len(value) > MaxText) {
			t.Errorf("the text %.40q passes", value)
		}
	})
}

// TestScopes checks that a name's scopes come from the outside in, and that the name itself is none.
func TestScopes(t *testing.T) {
	for name, want := range map[string][]string{
		"step":                   nil,
		"branch\x1fstep":         {"branch\x1f"},
		"map\x1fitem\x1fstep":    {"map\x1f", "map\x1fitem\x1f"},
		"\x1fthe name of a wait": {"\x1f"},
	} {
		if got := slices.Collect(Scopes(name)); !slices.Equal(got, want) {
			t.Errorf("the scopes of %q are %q, and not %q", name, got, want)
		}
	}
}

// The signals of two callbacks differ if their names or their generations differ, also for a branch with the name of a callback.
func TestCallbackSignals(t *testing.T) {
	shown := map[[2]string]string{
		{"a", ""}: "a", {"a", "#2"}: "a#2", {"a\x1f#2", ""}: "a/#2", {"a\x1fb", "#12"}: "a/b#12",
	}
	signals := make(map[string]bool)
	for of, want := range shown {
		signal := CallbackSignal(of[0], of[1])
		signals[signal] = true
		if wait, generation, ok := ParseCallbackSignal(signal); wait != of[0] || generation != of[1] || !ok || DisplaySignal(signal) != want {
			t.Errorf("%q is %q of generation %q, %v, and is shown as %q", signal, wait, generation, ok, DisplaySignal(signal))
		}
	}
	if len(signals) != len(shown) {
		t.Errorf("the signals %v are not all different", signals)
	}
}

func TestCallOfItem(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "7": "", "kids": "", "kids\x1f": "", "kids\x1f7": "kids", "a\x1fkids\x1f10000": "a\x1fkids", "kids\x1fa7": "", "kids\x1f7\x1fa": "", "kids/7": "",
	} {
		if got := ItemCallName(name); got != want {
			t.Errorf("the call of the item %q is %q, want %q", name, got, want)
		}
	}
}
