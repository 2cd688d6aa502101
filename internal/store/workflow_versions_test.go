package store

import (
	"testing"
	"time"
)

// Whatever versions have diverged on a run, some live version may claim it: what diverged keeps the run from no other version.
func TestSomeLiveVersionMayClaimADivergedRun(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	versions := []string{"v0", "v1", "v2"} // in the order of their arrival
	for live := 1; live < 1<<len(versions); live++ {
		var known KnownVersions
		for i, v := range versions {
			s := VersionSighting{Version: v, Workflow: "w", FirstSeen: now.Add(time.Duration(i-10) * time.Hour), LastSeen: now.Add(-time.Hour)}
			if live>>i&1 == 1 {
				s.LastSeen = now
			}
			known.Sightings = append(known.Sightings, s)
		}
		for ran := range versions {
			for set := range 1 << len(versions) {
				var all []Divergence
				for i, v := range versions {
					if set>>i&1 == 1 {
						all = append(all, Divergence{Version: v})
					}
				}
				diverged, may := DivergedVersionsOf(all), 0
				for i, v := range versions {
					if live>>i&1 == 1 && NewVersionClaimRules(v, known, nil, now).AllowsClaim("", "w", versions[ran], diverged) {
						may++
					}
				}
				if may == 0 {
					t.Errorf("the versions %03b live, %03b have diverged, %s executed the run last: none may claim it", live, set, versions[ran])
				}
			}
		}
	}
}
