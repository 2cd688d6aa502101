package ui

import (
	"net/http"
	"time"

	"github.com/seed8ec063be/durable"
)

// A filter has one tag. If the filter of [Visible] has a tag, and the page filters by a tag with another key, the dashboard reads the runs with the
// tag of Visible, and then checks which of them have the tag of the page.

// splitTagFilter returns the filter without its tag, and a filter with that tag only, if the condition of [Visible] is on a tag with another key. Otherwise
// it returns the filter as it is, and nil.
func (v *requestView) splitTagFilter(f durable.Filter) (durable.Filter, *durable.Filter) {
	if bound := v.visibleFilter(); f.Tag == "" || bound.Tag == "" || f.Tag == bound.Tag {
		return f, nil
	}
	second := &durable.Filter{Tag: f.Tag, TagValue: f.TagValue}
	f.Tag, f.TagValue = "", ""
	return f, second
}

// errSecondTag refuses a second tag where it is not checked.
var errSecondTag = &statusError{http.StatusBadRequest, "The runs that you may see are chosen by a tag, so failures cannot be grouped for a second tag: leave it out."}

// listRunsByTwoTags returns a page of the runs that match f, which has the conditions of [Visible], and also second. It searches for p.MaxTime.
func (v *requestView) listRunsByTwoTags(f, second durable.Filter, p durable.Page) (found durable.RunPage, err error) {
	limit, began, maxTime := p.Limit, time.Now(), p.MaxTime
	if maxTime == 0 {
		maxTime = v.searchTime
	}
	for p.Limit = mostChecked; ; {
		p.MaxTime = max(maxTime-time.Since(began), time.Millisecond)
		page, err := v.listRunsCached(f, p)
		if err != nil || len(page.Runs) == 0 {
			found.Next, found.SearchedTo = page.Next, page.SearchedTo
			return found, err
		}
		second.RunID = make([]string, len(page.Runs))
		for i := range page.Runs {
			second.RunID[i] = page.Runs[i].RunID
		}
		tagged, err := v.listRunsCached(second, durable.Page{Limit: mostChecked})
		if err != nil {
			return found, err
		}
		has := make(map[string]bool, len(tagged.Runs))
		for i := range tagged.Runs {
			has[tagged.Runs[i].RunID] = true
		}
		for i, run := range page.Runs {
			if !has[run.RunID] {
				continue
			}
			if found.Runs = append(found.Runs, run); len(found.Runs) == limit {
				if i < len(page.Runs)-1 || page.Next != "" {
					found.Next = run.RunID
				}
				return found, nil
			}
		}
		found.Next, found.SearchedTo = page.Next, page.SearchedTo
		if page.Next == "" || !page.SearchedTo.IsZero() {
			return found, nil
		}
		if time.Since(began) >= maxTime {
			found.SearchedTo = page.Runs[len(page.Runs)-1].CreatedAt
			return found, nil
		}
		p.Cursor = page.Next
	}
}
