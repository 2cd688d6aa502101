package ui

import (
	"net/http"
	"net/url"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// runsData is what the list of runs shows.
type runsData struct {
	Query      url.Values // the filter, as in the address
	Runs       []durable.RunInfo
	Next       string // the address of the next page; empty: this is the last
	First      string // the address of the first page; empty if this is the first page
	Statuses   []statusChoice
	Command    string             // the same list in a shell
	Fields     []keyValue         // the filter, for the form of a bulk act
	More       []extraFilterField // the conditions for which the form has a field only if they are set
	Filtered   bool
	SearchedTo time.Time // if not zero, the search stopped at this time of start
}

// statusChoice is a status in the form of the filter.
type statusChoice struct {
	Status string
	Chosen bool
}

// extraFilterField is a condition with its label.
type extraFilterField struct{ Label, Name, Value string }

// moreFields are the labels of the conditions for which the form has a field only if the condition is set.
var moreFields = []keyValue{
	{"Group key", paramKey},
	{"Priority", paramPriority},
	{"Started longer ago than", paramOlder},
	{"Executed by worker", paramWorker},
	{"Failed with", paramFailureType},
	{"Failed step", paramFailureStep},
	{"Child of", paramParent},
}

// pageSize is how many runs a page lists.
const pageSize = 50

func (s *dashboard) runsPage(w http.ResponseWriter, r *http.Request, v *requestView) error {
	q := r.URL.Query()
	filter, err := parseFilter(q, v.at)
	if err != nil {
		return err
	}
	page, err := v.parsePage(q, pageSize)
	if err != nil {
		return err
	}
	found, err := v.listRuns(filter, page)
	if err != nil {
		return err
	}
	d := &runsData{Query: selectFilterParams(q), Runs: found.Runs, SearchedTo: found.SearchedTo}
	d.Filtered = len(d.Query) > 0
	d.Command = s.commandName + " list" + cliFlagsOfFilter(d.Query)
	for _, name := range filterParams {
		for _, value := range d.Query[name] {
			d.Fields = append(d.Fields, keyValue{name, value})
		}
	}
	for _, field := range moreFields {
		for _, value := range d.Query[field.Value] {
			d.More = append(d.More, extraFilterField{field.Key, field.Value, value})
		}
	}
	if found.Next != "" {
		next := selectFilterParams(q)
		next.Set(paramCursor, found.Next)
		d.Next = "/runs?" + next.Encode()
	}
	if page.Cursor != "" {
		d.First = "/runs?" + d.Query.Encode()
	}
	chosen := make(map[string]bool)
	for _, status := range q[paramStatus] {
		chosen[status] = true
	}
	for _, status := range append([]durable.Status{"live", "ended"}, wording.Statuses...) {
		d.Statuses = append(d.Statuses, statusChoice{string(status), chosen[string(status)]})
	}
	return v.writePage(w, "runs", http.StatusOK, pageFrame{Title: "Runs", Section: "/runs", Notice: noticeAfterAct(q), Live: page.Cursor == "", Data: d})
}

// cliFlagsOfFilter returns the flags with which a command selects the runs of a filter, each after a space.
func cliFlagsOfFilter(q url.Values) (flags string) {
	for _, name := range filterParams {
		for _, value := range q[name] {
			if name == paramRoots || name == paramHeld {
				flags += " --" + name
				continue
			}
			flags += " --" + cliFlagName(name) + " " + quoteForShell(value)
		}
	}
	return flags
}

func cliFlagName(name string) string {
	text := []byte(name)
	for i, c := range text {
		if c == '_' {
			text[i] = '-'
		}
	}
	return string(text)
}

// notices are the texts that a page shows after an act, by the verb of the act. The address only names the verb, so that nobody can make
// the page show another text.
var notices = map[string]string{
	"pause": "Paused, or will be when its running step has finished.", "resume": "Resumed.", "cancel": "Cancelled, or will be when its compensations have finished.",
	"terminate": "Terminated.", "retry": "Retried: this is the new generation.", "fork": "Forked.", "override": "The value was replaced.", "skip": "The step was skipped.",
	"rerun": "The step is executed again.", "signal": "The signal was sent.", "tag": "The tag was set.", "move": "Moved to the queue.", "prioritize": "The priority was set.",
	"expire": "The timeout was set.", "delete": "Deleted.", "set": "Set.", "quiet": "Quiet from its next heartbeat on: it takes no further runs.", "reset": "Reset to what the code declares.", "trigger": "Triggered: the run was started.", "backfill": "The runs of the missed times were started.",
}

func noticeAfterAct(q url.Values) string { return notices[q.Get("did")] }
