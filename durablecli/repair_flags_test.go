package durablecli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// The refusal of a repair that does not say where it begins names the flags of the command, not the options of the Go package.
func TestRefusedRepairsNameFlags(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"its failure names no step", `the child of its call "ship": x; with the call in From, the run starts another child`, `its compensation "undo" was executed, and does not say which steps it undoes (see Undoes)`} {
		err := withRepairFlags(fmt.Errorf("%w: %s", durable.ErrFromRequired, text))
		if got := err.Error(); !errors.Is(err, durable.ErrFromRequired) || !strings.Contains(got, "--from CALL") || !strings.Contains(got, "--from-end") || strings.Contains(got, "Undoes") || strings.Contains(got, " From,") {
			t.Errorf("got %v", err)
		}
	}
	text := `its compensation "undo" has succeeded, and does not say which steps it undoes (see Undoes): From names the first step to execute again`
	if got := withRepairFlags(fmt.Errorf("%w: %s", durable.ErrFromRequired, text)).Error(); !strings.Contains(got, "--from CALL") || strings.Contains(got, "--from-end") || strings.Contains(got, " From ") {
		t.Errorf("got %s", got)
	}
	if other := errors.New("other"); withRepairFlags(other) != other {
		t.Error("another error is changed")
	}
}
