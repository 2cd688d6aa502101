package schedule

import (
	"strings"
	"testing"
)

// The error for a character that only other systems know says so, and names no setting of the parser, which a user cannot change.
func TestTheErrorForAnotherDialectOfCronNamesItsCharacters(t *testing.T) {
	for _, text := range []string{"0 0 * * 0#2", "0 0 * * MON#1", "0 0 L * *", "0 0 L-3 * *", "0 0 LW * *", "0 0 1W * *", "H * * * *", "H/15 * * * *", "0 H(0-7) * * *"} {
		_, err := parseCron(text)
		if err == nil || !strings.Contains(err.Error(), "L, W, # and H") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]string{"0 24 * * *": "24", "0 0 * *": "5 fields", "x * * * *": "x"} {
		if _, err := parseCron(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "L, W, # and H") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
