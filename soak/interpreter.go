package main

import (
	"context"
	"crypto/rand"
	"encoding/json/v2"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
)

var (
	errPlanned  = durable.RegisterError("soak.meant", errors.New("as planned"))
	retryPolicy = durable.Fixed(50*time.Millisecond, 12) // of steps that succeed in the end
)

// interpreter executes plans.
type interpreter struct {
	ledger *ledger
	folder string // for marks outside of the database
	// tx writes a row for the step, in a transaction of the store.
	tx func(c *durable.Ctx, name string, value func(context.Context) string) (string, error)
	// A plan is executed by one of these workflows. Only changing executes plans with an act whose call changes, so a run of order
	// is never held.
	order, changing *durable.Workflow[plan, []string]
}

func newInterpreter(book *ledger, folder string) *interpreter {
	p := &interpreter{ledger: book, folder: folder}
	p.order = durable.Define("order", p.interpret)
	p.changing = durable.Define("changing", p.interpret, durable.OnDrift(durable.DriftContinues)) // the checker expects the failures of doChanged
	return p
}

// workflow returns the workflow that executes the plan.
func (p *interpreter) workflow(of *plan) *durable.Workflow[plan, []string] {
	if of.mayDiverge() {
		return p.changing
	}
	return p.order
}

// execution is one execution of a run.
type execution struct {
	*interpreter
	c   *durable.Ctx
	run string
	id  string
}

func (p *interpreter) interpret(c *durable.Ctx, in plan) ([]string, error) {
	x := &execution{interpreter: p, c: c, run: c.RunID(), id: rand.Text()}
	x.ledger.add(entry{Kind: kindFunctionBegun, Run: x.run, Exec: x.id})
	out := make([]string, 0, len(in.Acts))
	for _, a := range in.Acts {
		v, err := x.executeAct(a)
		if err != nil {
			return nil, err
		}
		out = append(out, a.Name+"="+v)
	}
	switch in.End {
	case endsFailed:
		return nil, errPlanned
	case endsPanic:
		panic(errPlanned.Error())
	}
	return out, nil
}

// executeAct executes one act, and returns its recorded value or failure as text. An error means that the run is
// suspended, or must end.
func (x *execution) executeAct(a act) (string, error) {
	switch a.Do {
	case doStep:
		return x.step(x.c, a, a.Name)
	case doFlaky:
		return x.step(x.c, a, a.Name, durable.Retry(durable.Fixed(a.duration(), 12)))
	case doFailing:
		return x.step(x.c, a, a.Name, durable.Retry(durable.Fixed(a.duration(), a.N)))
	case doOnce:
		return x.step(x.c, a, a.Name, durable.AtMostOnce())
	case doVerify:
		return x.step(x.c, a, a.Name, durable.Verify(func(context.Context) (string, bool, error) { return x.readMark(a.Name) }))
	case doNaN:
		_, err := x.c.Step(a.Name, func(ctx context.Context) (float64, error) {
			x.recordStepCall(ctx, a, a.Name)
			return math.NaN(), nil
		})
		return x.recordReturn(a, a.Name, "", err)
	case doTx:
		v, err := x.tx(x.c, a.Name, func(ctx context.Context) string {
			x.recordStepCall(ctx, a, a.Name)
			return rand.Text()
		})
		return x.recordReturn(a, a.Name, v, err)
	case doSleep:
		return x.recordReturn(a, a.Name, "", x.c.Sleep(a.Name, a.duration()))
	case doReceive:
		x.ledger.add(entry{Kind: kindAwaitsSignal, Run: x.run, Step: a.Name, Do: a.Do})
		v, err := x.c.Receive[string](a.Name)
		return x.recordReturn(a, a.Name, v, err)
	case doWithin:
		x.ledger.add(entry{Kind: kindAwaitsSignal, Run: x.run, Step: a.Name, Do: a.Do, Value: a.duration().String()})
		v, err := x.c.Receive[string](a.Name, durable.Within(a.duration()), durable.Else(nothingReceived))
		return x.recordReturn(a, a.Name, v, err)
	case doAwait:
		wait := x.c.Callback[string](a.Name)
		x.ledger.add(entry{Kind: kindAwaitsSignal, Run: x.run, Step: a.Name, Do: a.Do, Value: wait.Token()})
		v, err := wait.Wait()
		return x.recordReturn(a, a.Name, v, err)
	case doCompensate:
		return "", x.c.Compensate(a.Name, func(ctx context.Context) error {
			x.recordStepCall(ctx, a, a.Name)
			return nil
		}, durable.Retry(retryPolicy))
	case doChanged:
		return x.executeChanged(a)
	}
	return x.executeCompound(a)
}

// nothingReceived is the value of a Receive whose deadline has passed.
const nothingReceived = "nothing came"

// executeCompound executes an act of several calls.
func (x *execution) executeCompound(a act) (string, error) {
	switch a.Do {
	case doMap:
		items := make([]int, a.N)
		for i := range items {
			items[i] = i
		}
		out, err := x.c.Map(a.Name, items, func(ctx context.Context, i int) (string, error) {
			x.recordStepCall(ctx, a, fmt.Sprintf("%s/%d", a.Name, i))
			return rand.Text(), nil
		})
		for i, v := range out {
			if err == nil {
				_, err = x.recordReturn(a, fmt.Sprintf("%s/%d", a.Name, i), v, nil)
			}
		}
		return strings.Join(out, ","), err
	case doRace:
		return x.executeRace(a)
	case doWaitForever:
		v, err := x.c.Receive[string](a.Name)
		return x.recordReturn(a, a.Name, v, err)
	case doBranches:
		out, err := durable.All(x.branches(a)...)
		return strings.Join(out, ","), err
	case doAny:
		rest := durable.KeepLosers
		if a.N%2 == 0 {
			rest = durable.CancelLosers
		}
		i, v, err := durable.Any(x.c, a.Name, rest, x.branches(a)...)
		return x.recordReturn(a, a.Name, fmt.Sprint(i, " ", v), err)
	case doQuorum:
		which, err := durable.Quorum(x.c, a.Name, a.N-1, durable.KeepLosers, x.branches(a)...)
		return x.recordReturn(a, a.Name, fmt.Sprint(which), err)
	case doChild:
		out, err := x.c.Child(a.Name, x.workflow(a.Plan), *a.Plan)
		return x.recordReturn(a, a.Name, strings.Join(out, ";"), err)
	case doDetached:
		_, err := x.c.StartChild(a.Name, x.workflow(a.Plan), *a.Plan, durable.Detached())
		return "", err
	}
	return "", fmt.Errorf("the op %q is unknown", a.Do)
}

// branches starts a.N branches of two steps each.
func (x *execution) branches(a act) (all []*durable.Future[string]) {
	for i := range a.N {
		branch := fmt.Sprintf("%s-%d", a.Name, i)
		all = append(all, x.c.Go(branch, func(c *durable.Ctx) (string, error) {
			v, err := x.step(c, act{Do: doStep, Name: "one", Ms: 10 * i}, branch+"/one")
			if err != nil {
				return "", err
			}
			w, err := x.step(c, act{Do: doStep, Name: "two"}, branch+"/two")
			return v + "+" + w, err
		}))
	}
	return all
}

// executeRace calls Any with a branch that takes Ms and with N losers. A loser starts a child, and waits for the signal
// that the function itself receives after the choice: the choice must end the losers before they receive it.
func (x *execution) executeRace(a act) (string, error) {
	all := []*durable.Future[string]{x.c.Go(a.Name+"-quick", func(c *durable.Ctx) (string, error) {
		return x.step(c, act{Do: doStep, Name: "one", Ms: a.Ms}, a.Name+"-quick/one")
	})}
	for i := range a.N {
		branch := fmt.Sprint(a.Name, "-loser-", i)
		all = append(all, x.c.Go(branch, func(c *durable.Ctx) (string, error) {
			if _, err := x.step(c, act{Do: doStep, Name: "one", Ms: 20 * i}, branch+"/one"); err != nil {
				return "", err
			}
			kid, err := c.StartChild("kid", x.order, *a.Plan)
			if err != nil {
				return "", err
			}
			hangs := c.Go("hangs", func(c *durable.Ctx) (string, error) {
				return x.step(c, act{Do: doStep, Name: "long", Ms: int(time.Hour / time.Millisecond)}, branch+"/hangs/long")
			})
			if v, err := c.Receive[string](a.Name + "-signal"); err == nil {
				return v, nil
			}
			_, _ = hangs.Wait()
			_, err = kid.Wait()
			return "", err
		}))
	}
	i, v, err := durable.Any(x.c, a.Name, durable.CancelLosers, all...)
	if v, err = x.recordReturn(a, a.Name, fmt.Sprint(i, " ", v), err); err != nil {
		return "", err
	}
	signal := a.Name + "-signal"
	x.ledger.add(entry{Kind: kindAwaitsSignal, Run: x.run, Step: signal, Do: doReceive})
	got, err := x.c.Receive[string](signal)
	if got, err = x.recordReturn(act{Do: doReceive, Name: signal}, signal, got, err); err != nil {
		return "", err
	}
	for _, f := range all[1:] {
		if _, err := f.Wait(); !errors.Is(err, durable.ErrCancelled) {
			return "!a loser returned " + fmt.Sprint(err), x.c.Err()
		}
	}
	return v + " " + got, nil
}

// step calls Step once. place is the name of the step with its scope.
func (x *execution) step(c *durable.Ctx, a act, place string, opts ...durable.StepOption) (string, error) {
	v, err := c.Step(a.Name, func(ctx context.Context) (string, error) {
		x.recordStepCall(ctx, a, place)
		if a.Do == doFailing || a.Do == doFlaky && durable.Attempt(ctx) <= a.N {
			return "", errPlanned
		}
		if a.Ms > 0 && a.Do != doFlaky {
			done := time.NewTimer(a.duration())
			defer done.Stop()
			select {
			case <-done.C:
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		if a.Do == doVerify {
			return x.writeMark(a.Name)
		}
		return rand.Text(), nil
	}, opts...)
	return x.recordReturn(a, place, v, err)
}

// executeChanged calls Step in the first execution of the run, and Sleep in later ones.
func (x *execution) executeChanged(a act) (string, error) {
	f, err := os.OpenFile(filepath.Join(x.folder, "changed-"+x.run), os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_ = f.Close()
		if _, err = x.step(x.c, act{Do: doStep, Name: a.Name}, a.Name); err != nil {
			return "", err
		}
	} else if err := x.c.Sleep(a.Name, 0); err != nil {
		return "", err
	}
	return "", x.c.Sleep(a.Name+"-park", a.duration())
}

// writeMark writes a value to a file, unless another execution has done so, and returns the value in the file.
func (x *execution) writeMark(name string) (string, error) {
	path := filepath.Join(x.folder, "mark-"+x.run+"-"+name)
	f, err := os.CreateTemp(x.folder, "new-")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	value := rand.Text()
	_, err = f.WriteString(value)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if err := os.Link(f.Name(), path); errors.Is(err, os.ErrExist) { // written by another execution
		value, _, err = x.readMark(name)
		return value, err
	} else if err != nil {
		return "", err
	}
	return value, nil
}

// readMark returns the value that mark wrote, and reports whether mark wrote one.
func (x *execution) readMark(name string) (string, bool, error) {
	b, err := os.ReadFile(filepath.Join(x.folder, "mark-"+x.run+"-"+name))
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil
	}
	return string(b), err == nil, err
}

// recordStepCall records that the function of a step was called.
func (x *execution) recordStepCall(ctx context.Context, a act, place string) {
	x.ledger.add(entry{Kind: kindStepCalled, Run: x.run, Exec: x.id, Step: place, Do: a.Do, Attempt: durable.Attempt(ctx)})
}

// recordReturn records what a durable call has returned, if that is a checkpoint: a value, or a failure, with
// which the plan continues. Other errors are returned.
func (x *execution) recordReturn(a act, place, value string, err error) (string, error) {
	var step *durable.StepError
	var child *durable.RunError
	e := entry{Kind: kindCallReturned, Run: x.run, Exec: x.id, Step: place, Do: a.Do, Value: value}
	switch {
	case err == nil:
	case errors.Is(err, durable.ErrSuspended), x.c.Err() != nil:
		return "", err
	case errors.As(err, &step):
		e.Value, e.Err = "", failureKind(err)
	case errors.As(err, &child): // its reason is not compared: the child may have diverged
		e.Value, e.Err = "", "child "+string(child.Status)
	default:
		return "", err
	}
	x.ledger.add(e)
	if e.Err != "" {
		return "!" + e.Err, nil
	}
	return value, nil
}

// failureKind returns the kind of the failure of a step.
func failureKind(err error) string {
	for text, kind := range map[string]error{
		"meant": errPlanned, "unknown": durable.ErrOutcomeUnknown, "encode": durable.ErrNotEncodable, "timeout": durable.ErrTimeout,
	} {
		if errors.Is(err, kind) {
			return text
		}
	}
	return err.Error()
}

// unquote returns a recorded value without its JSON quotes.
func unquote(b []byte) string {
	var s string
	if json.Unmarshal(b, &s) != nil {
		return string(b)
	}
	return s
}
