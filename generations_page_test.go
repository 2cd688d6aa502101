package durable_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// The pages of generations have what Generations returns, the newest first, whatever the size of a page.
func TestLatestGenerationsArePaged(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var l keyLedger
		w := countingTo(&l, 5)
		e := engineOn(t, s, w)
		running(t, e)
		run := orFail(w.Start(ctx, e, 1, durable.ID("c")))(t)
		if got, err := run.Result(ctx); err != nil || got != "counted to 5" {
			t.Fatalf("the run ended with %q, %v", got, err)
		}
		all := orFail(e.Generations(ctx, "c"))(t)
		slices.Reverse(all)
		for limit := range 7 {
			var pages []durable.Generation
			for p := (durable.Page{Limit: limit}); ; {
				page := orFail(e.LatestGenerations(ctx, "c", p))(t)
				if n := len(page.Generations); n == 0 || limit > 0 && n > limit || page.Next != "" && n != limit {
					t.Fatalf("a page with the limit %d is %+v", limit, page)
				}
				pages = append(pages, page.Generations...)
				if p.Cursor = page.Next; p.Cursor == "" {
					break
				}
			}
			if got, want := fmt.Sprintf("%+v", pages), fmt.Sprintf("%+v", all); len(all) != 5 || got != want {
				t.Errorf("in pages of %d: %s, want %s", limit, got, want)
			}
		}
		for generation, wantErr := range map[int]error{1: nil, 3: nil, 5: nil, 6: durable.ErrNotFound, math.MaxInt: durable.ErrNotFound} {
			page, err := e.HistoryPage(ctx, "c", durable.HistoryPart{}, durable.InGeneration(generation))
			if !errors.Is(err, wantErr) || err == nil && len(page.Outline) != 1 {
				t.Errorf("the history of generation %d is %+v, %v", generation, page, err)
			}
		}
		for _, cursor := range []string{"0", "-1", "05", "+5", "x", "99999999999"} {
			if _, err := e.LatestGenerations(ctx, "c", durable.Page{Cursor: cursor}); !errors.Is(err, durable.ErrInvalidCursor) {
				t.Errorf("with the cursor %q: %v", cursor, err)
			}
		}
		if _, err := e.LatestGenerations(ctx, "c", durable.Page{Limit: 1001}); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("with a limit that is too large: %v", err)
		}
		if _, err := e.LatestGenerations(ctx, "missing", durable.Page{}); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("of a run that does not exist: %v", err)
		}
	})
}

// A page of generations ends before its payloads have many megabytes, whatever its limit, and no generation is left out.
func TestPagesOfGenerationsAreBoundedInBytes(t *testing.T) {
	t.Run("plain", func(t *testing.T) { pagesOfGenerationsAreBoundedInBytes(t, nil) })
	t.Run("a codec that makes payloads larger", func(t *testing.T) { pagesOfGenerationsAreBoundedInBytes(t, twice{}) })
}

// twice is a codec whose payloads are stored two times.
type twice struct{}

func (twice) Encode(_ durable.PayloadSlot, b []byte) ([]byte, error) {
	return append(append([]byte{0xff}, b...), b...), nil
}

func (twice) Decode(_ durable.PayloadSlot, b []byte) ([]byte, error) { return b[1 : 1+len(b)/2], nil }

func pagesOfGenerationsAreBoundedInBytes(t *testing.T, codec durable.Codec) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		const generations, size = 12, 700 << 10
		type input struct {
			Number  int
			Payload string
		}
		w := durable.Define("large", func(c *durable.Ctx, in input) (int, error) {
			if in.Number < generations {
				return 0, c.ContinueAsNew(input{in.Number + 1, in.Payload})
			}
			return in.Number, nil
		})
		e := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w}, Codec: codec})
		running(t, e)
		if _, err := w.Call(ctx, e, input{1, strings.Repeat("x", size)}, durable.ID("large")); err != nil {
			t.Fatal(err)
		}
		all := orFail(e.Generations(ctx, "large"))(t)
		slices.Reverse(all)
		var paged []durable.Generation
		for p := (durable.Page{Limit: 1000}); ; {
			page := orFail(e.LatestGenerations(ctx, "large", p))(t)
			bytes := 0
			for i := range page.Generations {
				bytes += len(page.Generations[i].Input)
			}
			if bytes > 8*size || len(page.Generations) == 0 {
				t.Fatalf("a page has %d generations with %d bytes", len(page.Generations), bytes)
			}
			paged = append(paged, page.Generations...)
			if p.Cursor = page.Next; p.Cursor == "" {
				break
			}
		}
		if len(all) != generations || !reflect.DeepEqual(paged, all) {
			t.Errorf("the pages have %d generations, want the %d that Generations returns", len(paged), len(all))
		}
	})
}
