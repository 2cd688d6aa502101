package ui

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/seed8ec063be/durable"
)

// The values of the field reach of cancel. Without the field, the run and its descendants are cancelled.
const (
	reachOnlyItself    = "only itself"
	reachOnlyUnstarted = "only unstarted"
)

// fieldsOfEachVerb are the fields that every verb takes, besides its target.
var fieldsOfEachVerb = []string{"verb", "reason", "dry_run"}

// repairFields are the fields that every repair takes.
var repairFields = []string{"from", "from_end", "interrupt_steps"}

// verbFields are the further fields of each verb, by the field that names its target.
var verbFields = map[string]map[string][]string{
	paramTargetRun: {
		"resume": {"freeze_timers"}, "cancel": {"reach"},
		"retry": repairFields, "fork": append([]string{"new_id"}, repairFields...), "override": append([]string{"step", "value"}, repairFields...),
		"skip": {"step", "value", "interrupt_steps"}, "rerun": {"step", "interrupt_steps"},
		"signal": {"name", "payload", "key"}, "tag": {"tag_key", "tag_value"}, "move": {"to_queue"}, "prioritize": {"priority"}, "expire": {"timeout"},
	},
	paramTargetQueue: {"set": {
		"max_executing", "max_executing_per_worker", "max_in_progress", "max_executing_per_key", "max_in_progress_per_key", "depth",
		"rate", "burst", "rate_per_key", "burst_per_key", paramClosed,
	}},
	paramTargetLimit:    {"set": {"concurrent", "rate", "burst"}},
	paramTargetSchedule: {"backfill": {"after", "before"}},
	paramTargetWorker:   {},
}

// actFields are the fields of all acts, as docs/dashboard.md lists them.
var actFields = collectActFields()

func collectActFields() []string {
	fields := slices.Clone(fieldsOfEachVerb)
	for target, verbs := range verbFields {
		fields = append(fields, target)
		for _, names := range verbs {
			fields = append(fields, names...)
		}
	}
	return fields
}

// checkVerbFields returns an error if the form has a field that the verb does not take, or fields that exclude each other: the act would do
// something else than its author intended. An empty field counts as missing.
func (f actForm) checkVerbFields(verb string) error {
	for target, verbs := range verbFields {
		if !f.Has(target) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(f.Values)) {
			text := f.text(name)
			known := slices.Contains(actFields, name) && name != target && !slices.Contains(fieldsOfEachVerb, name)
			if known && text != "" && !(payloadFields[name] && text == "null") && !slices.Contains(verbs[verb], name) {
				return &statusError{http.StatusBadRequest, fmt.Sprintf("The act %q has no field %q, so nothing was done: leave the field out.", verb, name)}
			}
		}
	}
	if f.Has("from_end") && f.Get("from") != "" {
		return &statusError{http.StatusBadRequest, "The fields from and from_end are both given: leave one of them out."}
	}
	return nil
}

// parseCancelReach returns which runs a cancel reaches.
func (f actForm) parseCancelReach() ([]durable.ControlOption, error) {
	switch text := f.text("reach"); text {
	case "":
		return nil, nil
	case reachOnlyItself:
		return []durable.ControlOption{durable.OnlyItself()}, nil
	case reachOnlyUnstarted:
		return []durable.ControlOption{durable.OnlyUnstarted()}, nil
	default:
		return nil, &statusError{http.StatusBadRequest, fmt.Sprintf("The field \"reach\" is %q: use %q or %q, or leave it out to cancel the run and its descendants.", text, reachOnlyItself, reachOnlyUnstarted)}
	}
}
