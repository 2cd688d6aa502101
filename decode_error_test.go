package durable_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// account decodes only from "none", and quotes what it refuses.
type account string

var errNoAccount = errors.New("no account")

func (a *account) UnmarshalText(text []byte) error {
	if string(text) != "none" {
		return fmt.Errorf("%w: %s", errNoAccount, text)
	}
	*a = "none"
	return nil
}

// holdByInput holds a run because its input, of the old type, does not decode into the new type. It returns the texts that say why.
func holdByInput[Old, New any](t *testing.T, s durable.Store, id string, in Old) []string {
	t.Helper()
	client := engineOn(t, s)
	if _, err := durable.Define(id, func(*durable.Ctx, Old) (int, error) { return 0, nil }).Start(within(t), client, in, durable.ID(id)); err != nil {
		t.Fatal(err)
	}
	newer := durable.Define(id, func(*durable.Ctx, New) (int, error) { return 0, nil })
	defer running(t, engineWith(t, s, durable.Config{Workflows: []durable.Definition{newer}}))()
	awaitStatus(t, client, id, durable.StatusPaused)
	all := read(client.Divergences(within(t), id))(t)
	if len(all) != 1 {
		t.Fatalf("the divergences of run %s are %+v", id, all)
	}
	return []string{read(client.Get(within(t), id))(t).Reason, all[0].Reason}
}

// The text of the error for a value that does not decode says where and into which type, and quotes nothing of the value: it is recorded, logged, and
// shown to people who may not see payloads.
func TestErrorsOfDecodingQuoteNoValue(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		type paid struct{ Cents int }
		for _, c := range []struct {
			texts        []string
			secret, want string
		}{
			{holdByInput[string, time.Time](t, s, "a time", "4111-1111"), "4111-1111", "not a time of the layout"},
			{holdByInput[float64, int](t, s, "a number", 41111111.5), "41111111.5", "JSON number into Go int"},
			{holdByInput[map[string]float64, paid](t, s, "a field", map[string]float64{"Cents": 4111.5}), "4111.5", `within "/Cents"`},
			{holdByInput[string, account](t, s, "a text", "4111-1111"), "4111-1111", "decode into durable_test.account"},
			{holdByInput[map[string]string, map[string]int](t, s, "a key", map[string]string{"4111-1111": ""}), "4111-1111", "decode into map[string]int"},
		} {
			for _, text := range c.texts {
				if strings.Contains(text, c.secret) || !strings.Contains(text, c.want) {
					t.Errorf("the run is held because of %q, which is to say %q", text, c.want)
				}
			}
		}
	})
}

// The error for a value that does not decode wraps the error that the type returned.
func TestErrorsOfDecodingWrapTheCause(t *testing.T) {
	w := durable.Define("w", func(*durable.Ctx, account) (int, error) { return 0, nil })
	if _, err := w.Start(within(t), engineOn(t, openStore(t), w), "4111-1111"); !errors.Is(err, errNoAccount) || !errors.Is(err, durable.ErrNotEncodable) || strings.Contains(err.Error(), "4111") {
		t.Errorf("the error is %v", err)
	}
}
