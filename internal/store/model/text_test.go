package model_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/store/model"
)

// Of models with equal texts the check keeps one, so the text tells every difference.
func TestTextTellsNilFromEmpty(t *testing.T) {
	with := func(p store.Step) string {
		m := model.New()
		m.Runs[uuid.Max] = &model.Run{Steps: map[string]store.Step{"step": p}}
		return m.String()
	}
	if l, r := with(store.Step{Failures: nil}), with(store.Step{Failures: []byte{}}); l == r {
		t.Errorf("both are %s", l)
	}
}
