package durablecli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// statusNames returns the values of --status that stand for one status.
func statusNames() (names []string) {
	for _, s := range wording.Statuses {
		names = append(names, string(s))
	}
	return names
}

// filterFlags are the flags of a durable.Filter.
type filterFlags struct {
	workflow, queue, groupKey, tag, idPrefix, after, before, failedStep, failedType, version, worker, endedAfter, endedBefore string
	statuses                                                                                                                  []string
	parents                                                                                                                   []string
	priorities                                                                                                                []int
	olderThan                                                                                                                 time.Duration
	roots, held                                                                                                               bool
	cmd                                                                                                                       *cobra.Command
}

func (f *filterFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.cmd = cmd
	flags.StringVarP(&f.workflow, "workflow", "w", "", "runs of this workflow")
	flags.StringSliceVarP(&f.statuses, "status", "s", nil, "runs with one of these statuses: "+strings.Join(statusNames(), ", ")+"; live and ended stand for four each")
	flags.StringVarP(&f.queue, "queue", "q", "", "runs in this queue")
	flags.StringVar(&f.groupKey, "key", "", "live runs with this group key, with --queue")
	flags.IntSliceVar(&f.priorities, "priority", nil, "runs with one of these priorities")
	flags.StringVarP(&f.tag, "tag", "t", "", "runs with this tag, as key or key=value")
	flags.StringVar(&f.idPrefix, "id-prefix", "", "root runs whose ID begins with this text")
	flags.Var(durationFlag{&f.olderThan}, "older-than", "runs that were started longer ago, such as 90m or 2d")
	flags.StringVar(&f.after, "created-after", "", "runs that were started after this time: a time, a date, today, yesterday, or how long ago, such as 2d")
	flags.StringVar(&f.before, "created-before", "", "runs that were started before this time")
	flags.StringVar(&f.version, "run-version", "", "runs of this version of the program")
	flags.StringVar(&f.worker, "worker", "", "runs that the worker with this ID executes now")
	flags.StringVar(&f.endedAfter, "ended-after", "", "runs that ended after this time")
	flags.StringVar(&f.endedBefore, "ended-before", "", "runs that ended before this time")
	flags.StringVar(&f.failedStep, "failed-step", "", "with --failed-type and --workflow: runs of a group that the command failures shows; -, or no flag: the function failed by itself")
	flags.StringVar(&f.failedType, "failed-type", "", "runs that failed with an error of this type; with --workflow and, if there is one, --failed-step")
	flags.StringSliceVar(&f.parents, "parent", nil, "children of the runs with these UUIDs")
	flags.BoolVar(&f.held, "held", false, "runs that are held, because the code does not fit them or their writes were rejected; not with --key, --parent or --failed-type")
	flags.BoolVar(&f.roots, "roots", false, "root runs, no children")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(append([]string{"live", "ended"}, statusNames()...), cobra.ShellCompDirectiveNoFileComp))
}

// checkEmpty returns an error if a condition is given with an empty value, for example by a shell variable that is not set: the filter
// would match more runs than intended.
func (f *filterFlags) checkEmpty() error {
	for _, name := range []string{"workflow", "status", "queue", "key", "tag", "id-prefix", "created-after", "created-before", "ended-after", "ended-before", "run-version", "worker", "failed-type", "parent"} {
		if flag := f.cmd.Flags().Lookup(name); flag != nil && flag.Changed && (flag.Value.String() == "" || flag.Value.String() == "[]") {
			return newUsageError("--%s is given and empty: give it a value, or leave it out", name)
		}
	}
	if flag := f.cmd.Flags().Lookup("failed-step"); flag != nil && flag.Changed && flag.Value.String() == "" {
		return newUsageError("--failed-step is given and empty: give it a step; for runs whose function failed by itself, give it -")
	}
	return nil
}

// filter returns the filter, and reports whether it has a condition.
func (f *filterFlags) filter(now time.Time) (durable.Filter, bool, error) {
	if err := f.checkEmpty(); err != nil {
		return durable.Filter{}, false, err
	}
	key, value, hasValue := strings.Cut(f.tag, "=")
	if hasValue && (key == "" || value == "") {
		return durable.Filter{}, false, newUsageError("the tag %q is incomplete: write --tag key or --tag key=value", f.tag)
	}
	filter := durable.Filter{
		Workflow: f.workflow, Queue: f.queue, GroupKey: f.groupKey, Priority: f.priorities, Tag: key, TagValue: value,
		IDPrefix: f.idPrefix, OlderThan: f.olderThan, Roots: f.roots, Parent: f.parents,
		Version: f.version, Owner: f.worker, Held: f.held,
	}
	if f.failedStep != "" || f.failedType != "" {
		if f.workflow == "" || f.failedType == "" {
			return filter, false, newUsageError("a group of failures has a workflow and a type of error: give --workflow and --failed-type too, as the command failures shows them")
		}
		filter.Failure = durable.FailureKey{Workflow: f.workflow, Step: f.failedStep, Type: f.failedType}
		if f.failedStep == "-" { // as durable failures shows it
			filter.Failure.Step = ""
		}
	}
	for _, s := range f.statuses {
		if group, ok := wording.StatusGroups[s]; ok {
			filter.Status = append(filter.Status, group...)
			continue
		}
		if !slices.Contains(wording.Statuses, durable.Status(s)) {
			return filter, false, newUsageError("the status %q does not exist: use %s, live or ended", s, strings.Join(statusNames(), ", "))
		}
		filter.Status = append(filter.Status, durable.Status(s))
	}
	for _, t := range []struct {
		text string
		to   *time.Time
	}{{f.after, &filter.CreatedAfter}, {f.before, &filter.CreatedBefore}, {f.endedAfter, &filter.EndedAfter}, {f.endedBefore, &filter.EndedBefore}} {
		if t.text == "" {
			continue
		}
		var err error
		if *t.to, err = wording.ParseTime(t.text, now); err != nil {
			return filter, false, &markedError{errUsage, err}
		}
	}
	switch {
	case f.after != "" && f.after == f.before:
		return filter, false, newUsageError("--created-after and --created-before are the same time: no run matches")
	case f.endedAfter != "" && f.endedAfter == f.endedBefore:
		return filter, false, newUsageError("--ended-after and --ended-before are the same time: no run matches")
	}
	given := f.workflow+f.queue+f.groupKey+f.tag+f.idPrefix+f.after+f.before+f.version+f.worker+f.endedAfter+f.endedBefore != "" || len(f.statuses)+len(f.priorities)+len(f.parents) > 0 || f.olderThan > 0 || f.roots || f.held
	return filter, given, nil
}
