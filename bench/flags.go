package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/bench/result"
)

// options are the values of the flags.
type options struct {
	stores  []string
	modes   []string
	callers []int // -c
	window  time.Duration
	rounds  int
	payload int // bytes of JSON that a step returns
	steps   int // of a workflow
	json    string
	profile string // of this process, of the paths given
	paths   []string

	samples   int           // of dispatch
	takeovers int           // kills
	history   int           // steps of the run that is replayed
	sleepers  int           // runs that sleep
	aged      int           // finished runs in the tables
	swept     int           // finished runs, of which retention deletes half
	checked   int           // live runs that a preflight replays
	items     int           // of the Map
	parts     []string      // of mode queues
	backlog   int           // due runs behind a bound
	keys      int           // group keys of the backlog
	schedules int           // schedules that are due at once
	backfill  int           // scheduled times of one Backfill
	registers int           // workflows that one worker executes; a tenth as many queues
	workers   int           // without work
	engines   []int         // of each fleet
	fleetRuns int           // that a fleet executes
	waiting   int           // runs that wait for a signal
	executing int           // runs that are executed all the time
	children  int           // of the run that is paused, resumed and cancelled
	listed    int           // runs of mode ui
	rate      int           // of the workflows of mode ui, per second
	maxConns  int           // max_connections of the PostgreSQL server
	watched   time.Duration // how long these are measured
	soak      time.Duration // how long
	tight     bool          // a smoke run: warm-ups and pauses are as short as can be
}

// The stores that can be measured. "sqlite" selects both levels of durability.
var stores = []string{"postgres", "sqlite-full", "sqlite-normal"}

// The paths of the default mode, in the order in which a round measures them.
var paths = []string{pathCeiling, pathNaive, pathLocal, pathClaimed}

const (
	pathCeiling = "ceiling"
	pathNaive   = "naive"
	pathLocal   = "local"
	pathClaimed = "claimed"
)

// modes are the measurements, by the value of the flag -mode.
var modes = []struct {
	name string
	run  func(*bench, *site) error
}{
	{result.Default, (*bench).rounds},
	{"dispatch", (*bench).dispatch},
	{"takeover", (*bench).takeover},
	{"idle", (*bench).idle},
	{"fleet", (*bench).fleet},
	{"live", (*bench).live},
	{"replay", (*bench).replay},
	{"sleepers", (*bench).sleepers},
	{"aged", (*bench).aged},
	{"sweep", (*bench).sweep},
	{"preflight", (*bench).preflight},
	{"payload", (*bench).payloads},
	{"codec", (*bench).codecs},
	{"fanout", (*bench).fanout},
	{"graph", (*bench).graph},
	{"queues", (*bench).queues},
	{"ui", (*bench).ui},
	{"soak", (*bench).soak},
}

func modeNames() (names []string) {
	for _, m := range modes {
		names = append(names, m.name)
	}
	return names
}

// parse parses the command line. Its errors list the allowed values.
func parse(args []string, out io.Writer) (*options, error) {
	o := new(options)
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(out)
	store := set.String("store", "postgres,sqlite", "what to measure: postgres, sqlite (both levels), sqlite-full, sqlite-normal")
	mode := set.String("mode", result.Default, strings.Join(modeNames(), ", ")+", or all")
	callers := set.String("c", "1,16,100,1000", "how many callers at once")
	path := set.String("path", strings.Join(paths, ","), "what a round of the default mode measures")
	seconds := set.Float64("seconds", 1, "how long each measurement takes, after its warm-up")
	part := set.String("part", strings.Join(queueParts, ","), "what mode queues measures")
	watched := set.Float64("idle-seconds", 30, "how long mode idle measures workers without work")
	soak := set.Float64("soak-minutes", 10, "how long the soak takes")
	set.IntVar(&o.rounds, "rounds", 3, "how often each is measured, in turns; the medians are printed")
	set.IntVar(&o.payload, "payload", 60, "bytes of JSON that each step returns")
	set.IntVar(&o.steps, "steps", 10, "steps of a workflow")
	set.StringVar(&o.json, "json", "", "write the figures to this file")
	set.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of this process to this file")
	set.IntVar(&o.samples, "samples", 200, "runs that mode dispatch starts")
	set.IntVar(&o.takeovers, "takeovers", 20, "processes that mode takeover kills, in each of its two ways")
	set.IntVar(&o.history, "history", 10_000, "steps of the run that mode replay replays")
	set.IntVar(&o.sleepers, "sleepers", 1_000_000, "runs that sleep in modes sleepers and live")
	set.IntVar(&o.aged, "aged-runs", 5_000_000, "finished runs in the tables of mode aged")
	set.IntVar(&o.items, "items", 10_000, "items of the Map of mode fanout, and children in mode graph")
	set.IntVar(&o.swept, "swept-runs", 1_000_000, "finished runs in the tables of mode sweep, of which half are swept")
	set.IntVar(&o.checked, "checked-runs", 20_000, "live runs that mode preflight replays")
	set.IntVar(&o.backlog, "backlog", 1_000_000, "due runs behind the bound of a queue in mode queues, and behind those that a fleet executes")
	set.IntVar(&o.keys, "keys", 10_000, "group keys of these runs")
	set.IntVar(&o.schedules, "schedules", 10_000, "schedules of mode queues that are due at once")
	set.IntVar(&o.backfill, "backfill", 100_000, "scheduled times that mode queues fires with one Backfill")
	set.IntVar(&o.registers, "registers", 10_000, "workflows that one worker of mode queues executes, of a tenth as many queues")
	set.IntVar(&o.workers, "workers", 50, "workers of mode idle, each with a store of its own, five in a process")
	engines := set.String("engines", "1,4,16,64", "numbers of engines of mode fleet, with 1,600 slots in sum")
	set.IntVar(&o.fleetRuns, "fleet-runs", 40_000, "runs that each fleet executes")
	set.IntVar(&o.waiting, "waiting", 100_000, "runs of mode live that wait for a signal")
	set.IntVar(&o.executing, "executing", 10_000, "runs of mode live that are executed all the time")
	set.IntVar(&o.children, "children", 50_000, "children of the run of mode live that is paused, resumed and cancelled")
	set.IntVar(&o.listed, "listed-runs", 5_000_000, "runs that the dashboard of mode ui lists")
	set.IntVar(&o.rate, "rate", 2000, "workflows per second under which mode ui measures the overview")
	set.IntVar(&o.maxConns, "max-connections", 200, "max_connections of the PostgreSQL server")
	quick := set.Bool("quick", false, "a smoke run of a few seconds, whose figures mean nothing")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("%q is not a flag: -h lists them", set.Arg(0))
	}
	o.window = time.Duration(*seconds * float64(time.Second))
	o.soak = time.Duration(*soak * float64(time.Minute))
	o.watched = time.Duration(*watched * float64(time.Second))
	if *quick {
		given := make(map[string]bool)
		set.Visit(func(f *flag.Flag) { given[f.Name] = true })
		o.shorten(given, callers, engines)
	}
	return o, errors.Join(o.choose(*store, *mode, *callers, *engines, *path, *part), o.check())
}

// shorten implements -quick: every flag that is not given gets its smallest value.
func (o *options) shorten(given map[string]bool, callers, engines *string) {
	o.tight = true
	for name, shrink := range map[string]func(){
		"c":            func() { *callers = "4" },
		"seconds":      func() { o.window = 100 * time.Millisecond },
		"rounds":       func() { o.rounds = 1 },
		"samples":      func() { o.samples = 5 },
		"takeovers":    func() { o.takeovers = 1 },
		"history":      func() { o.history = 100 },
		"sleepers":     func() { o.sleepers = 500 },
		"aged-runs":    func() { o.aged = 1000 },
		"swept-runs":   func() { o.swept = 1000 },
		"checked-runs": func() { o.checked = 300 },
		"items":        func() { o.items = 100 },
		"backlog":      func() { o.backlog = 200 },
		"keys":         func() { o.keys = 10 },
		"schedules":    func() { o.schedules = 10 },
		"backfill":     func() { o.backfill = 150 },
		"registers":    func() { o.registers = 20 },
		"workers":      func() { o.workers = 2 },
		"engines":      func() { *engines = "2" },
		"fleet-runs":   func() { o.fleetRuns = 300 },
		"waiting":      func() { o.waiting = 20 },
		"executing":    func() { o.executing = 10 },
		"listed-runs":  func() { o.listed = 2000 },
		"children":     func() { o.children = 50 },
		"idle-seconds": func() { o.watched = time.Second },
		"soak-minutes": func() { o.soak = 600 * time.Millisecond },
	} {
		if !given[name] {
			shrink()
		}
	}
}

// choose parses the flags that are lists.
func (o *options) choose(store, mode, callers, engines, path, part string) error {
	var errs []error
	names := modeNames()
	for s := range strings.SplitSeq(store, ",") {
		if s == "sqlite" {
			o.stores = append(o.stores, stores[1:]...)
			continue
		}
		errs = append(errs, pick(&o.stores, "store", s, append([]string{"sqlite"}, stores...)))
	}
	for s := range strings.SplitSeq(mode, ",") {
		if s == "all" {
			o.modes = append(o.modes, names...)
			continue
		}
		errs = append(errs, pick(&o.modes, "mode", s, append([]string{"all"}, names...)))
	}
	for s := range strings.SplitSeq(path, ",") {
		errs = append(errs, pick(&o.paths, "path", s, paths))
	}
	for s := range strings.SplitSeq(part, ",") {
		errs = append(errs, pick(&o.parts, "part", s, queueParts))
	}
	var wrong error
	o.callers, wrong = numbers("c", callers, "1,16,100")
	errs = append(errs, wrong)
	o.engines, wrong = numbers("engines", engines, "1,4,16,64")
	errs = append(errs, wrong)
	o.stores, o.modes = unique(o.stores), unique(o.modes)
	return errors.Join(errs...)
}

// numbers parses the value of a flag that is a list of numbers.
func numbers(flag, list, such string) (all []int, err error) {
	for s := range strings.SplitSeq(list, ",") {
		n, wrong := strconv.Atoi(s)
		if wrong != nil || n < 1 {
			err = errors.Join(err, fmt.Errorf("-%s=%s: write numbers from 1, such as -%s=%s", flag, s, flag, such))
		}
		all = append(all, n)
	}
	return all, err
}

func pick(to *[]string, flag, word string, known []string) error {
	if !slices.Contains(known, word) {
		return fmt.Errorf("-%s=%s is not known: use %s", flag, word, strings.Join(known, ", "))
	}
	*to = append(*to, word)
	return nil
}

func unique(words []string) (once []string) {
	for _, w := range words {
		if !slices.Contains(once, w) {
			once = append(once, w)
		}
	}
	return once
}

func (o *options) check() error {
	var errs []error
	least := func(flag string, n, least int) {
		if n < least {
			errs = append(errs, fmt.Errorf("-%s=%d: it must be at least %d", flag, n, least))
		}
	}
	least("rounds", o.rounds, 1)
	least("payload", o.payload, smallest)
	least("steps", o.steps, 1)
	least("samples", o.samples, 1)
	least("takeovers", o.takeovers, 1)
	least("history", o.history, 1)
	least("sleepers", o.sleepers, 100)
	least("aged-runs", o.aged, 1000)
	least("swept-runs", o.swept, 1000)
	least("checked-runs", o.checked, 1)
	least("items", o.items, 1)
	least("backlog", o.backlog, 1)
	least("keys", o.keys, 1)
	least("schedules", o.schedules, 1)
	least("backfill", o.backfill, 1)
	least("registers", o.registers, 10)
	least("workers", o.workers, 1)
	for _, n := range o.engines {
		if n > fleetSlots {
			errs = append(errs, fmt.Errorf("-engines=%d: it must be at most %d, a slot each", n, fleetSlots))
		}
	}
	least("fleet-runs", o.fleetRuns, 10)
	least("waiting", o.waiting, 1)
	least("executing", o.executing, 1)
	least("children", o.children, 1)
	least("listed-runs", o.listed, 1000)
	least("rate", o.rate, 1)
	least("max-connections", o.maxConns, 20)
	if o.watched <= 0 {
		errs = append(errs, errors.New("-idle-seconds: it must be above 0"))
	}
	if o.window <= 0 {
		errs = append(errs, errors.New("-seconds: it must be above 0"))
	}
	if o.soak <= 0 {
		errs = append(errs, errors.New("-soak-minutes: it must be above 0"))
	}
	return errors.Join(errs...)
}

// warm returns how long a load runs before it is measured.
func (o *options) warm() time.Duration { return max(o.window/3, 50*time.Millisecond) }

// callerCount returns the number of callers, which is small with -quick.
func (o *options) callerCount(callers int) int {
	if o.tight {
		return 4
	}
	return callers
}

// loadPause returns the pause before a load, in which the database finishes work of the load before.
func (o *options) loadPause() time.Duration {
	if o.tight {
		return time.Millisecond
	}
	return 150 * time.Millisecond
}
