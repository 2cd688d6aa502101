package durablecli

import "testing"

// The last line of the doctor counts what it has found, and says why the exit code is 1. Warnings alone are no error.
func TestTheDoctorsErrorCountsTheProblems(t *testing.T) {
	for want, levels := range map[string][]severity{
		"": {fine, warning, warning},
		`the doctor found 1 problem, and exits with 1`:                {fine, problem},
		`the doctor found 2 problems and 1 warning, and exits with 1`: {problem, warning, fine, problem},
	} {
		var findings []finding
		for _, level := range levels {
			findings = append(findings, newFinding(level, "check", "finding", ""))
		}
		err := problemsError(findings)
		switch {
		case err == nil && want != "", err != nil && err.Error() != want:
			t.Errorf("of %v it says %v", levels, err)
		case err != nil && ExitCode(&commandError{err}) != ExitError:
			t.Errorf("of %v it exits with %d", levels, ExitCode(&commandError{err}))
		}
	}
}
