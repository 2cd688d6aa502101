package schedule

import (
	"testing"
	"time"
)

// A declaration replaces that of a worker of the same version that started before it, or after the present, by a clock that was set back.
func TestTheDeclarationOfTheWorkerThatStartedLastIsRecorded(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, c := range []struct {
		recorded, own time.Duration
		want          bool
	}{{-2, -1, true}, {-1, -1, false}, {-1, -2, false}, {1, -1, true}} {
		s := &State{Declared: &Settings{}, DeclaredVersion: "v1", DeclarerStarted: now.Add(c.recorded * time.Hour)}
		d := &Declaration{Version: "v1", Started: now.Add(c.own * time.Hour)}
		if got := d.replacesRecorded(s, now); got != c.want {
			t.Errorf("the declaration of a worker that started at %v replaces that at %v: %v", c.own, c.recorded, got)
		}
	}
}
