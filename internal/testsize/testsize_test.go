package testsize

import "testing"

func TestTheVariableSetsTheSize(t *testing.T) {
	for value, want := range map[string]int{"all": 100, "small": 3, "": 3} {
		t.Setenv(Variable, value)
		if got := Of(100, 3); got != want {
			t.Errorf("%s=%q: %d, want %d", Variable, value, got, want)
		}
	}
	t.Setenv(Variable, "evrything")
	defer func() {
		if recover() == nil {
			t.Error("an unknown value is taken")
		}
	}()
	IsFull()
}
