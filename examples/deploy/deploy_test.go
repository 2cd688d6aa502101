package main

import "testing"

// TestDeploy executes the demo with few orders.
func TestDeploy(t *testing.T) {
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			if err := deploy(t.Context(), store, 45); err != nil {
				t.Error(err)
			}
		})
	}
}
