package ui

import (
	"context"
	"net/url"
	"slices"

	"github.com/seed8ec063be/durable"
)

// generationsPerPage is how many generations the page of a run lists.
const generationsPerPage = 20

// paramGenerations is the cursor of the generations on the page of a run.
const paramGenerations = "generations_cursor"

// apiGenerations returns a page of the generations of a run, the newest first.
func apiGenerations(v *requestView, run *visibleRun, q url.Values) (any, error) {
	p, err := v.parsePage(q, 100)
	if err != nil {
		return nil, err
	}
	return v.redactedGenerations(run, p)
}

// redactedGenerations returns a page of generations without the texts and payloads that the request may not see.
func (v *requestView) redactedGenerations(run *visibleRun, p durable.Page) (durable.GenerationPage, error) {
	page, err := readOncePerReloadRound(v, cacheKey("generations", run.RunID, p), func(ctx context.Context) (durable.GenerationPage, error) {
		return v.engine.LatestGenerations(ctx, run.RunID, p)
	})
	page.Generations = slices.Clone(page.Generations) // others may be shown the same page
	run.redactor.redactGenerations(page.Generations)
	return page, err
}
