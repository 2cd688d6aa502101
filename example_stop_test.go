package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed8ec063be/durable"
)

func ExampleEngine_Pause() {
	store, remove := temporary()
	defer remove()
	job := durable.Define("job", func(*durable.Ctx, int) (string, error) { return "done", nil })
	engine := newEngine(store, job)
	ctx := context.Background()
	if _, err := job.Start(ctx, newEngine(store), 0, durable.ID("job-1")); err != nil {
		log.Fatal(err)
	}
	effect, err := engine.Pause(ctx, "job-1", durable.Reason("the bank is closed"), durable.Actor("ann"))
	fmt.Println(effect.Done, err)
	run, err := engine.Get(ctx, "job-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s by %s: %s\n", run.Status, run.PausedBy, run.Reason)
	effect, err = engine.Resume(ctx, "job-1")
	fmt.Println(effect.Done, err)
	fmt.Println(job.Call(ctx, engine, 0, durable.ID("job-1")))
	// Output:
	// 1 <nil>
	// paused by ann: the bank is closed
	// 1 <nil>
	// done <nil>
}

// Terminate ends a run even if no program has its workflow any more.
func ExampleEngine_Terminate() {
	store, remove := temporary()
	defer remove()
	removed := durable.Define("removed", func(*durable.Ctx, int) (int, error) { return 0, nil })
	client := newEngine(store)
	ctx := context.Background()
	run, err := removed.Start(ctx, client, 0, durable.ID("old-1"))
	if err != nil {
		log.Fatal(err)
	}
	effect, err := client.Terminate(ctx, "old-1", durable.Reason("the workflow was removed"))
	fmt.Println(effect.Done, err)
	_, err = run.Result(ctx)
	fmt.Println(errors.Is(err, durable.ErrCancelled), errors.Is(err, durable.ErrTerminated))
	// Output:
	// 1 <nil>
	// true true
}

func startThree(client *durable.Engine) {
	job := durable.Define("job", func(*durable.Ctx, int) (int, error) { return 0, nil })
	for i := range 3 {
		if _, err := job.Start(context.Background(), client, i, durable.ID(fmt.Sprint("job-", i))); err != nil {
			log.Fatal(err)
		}
	}
}

func ExampleEngine_ResumeAll() {
	store, remove := temporary()
	defer remove()
	client := newEngine(store)
	startThree(client) // of the workflow "job"
	ctx := context.Background()
	if _, err := client.PauseAll(ctx, durable.Filter{Workflow: "job"}); err != nil {
		log.Fatal(err)
	}
	effect, err := client.ResumeAll(ctx, durable.Filter{Workflow: "job"})
	fmt.Println(effect.Matched, effect.Done, err)
	// Output: 3 3 <nil>
}

func ExampleEngine_CancelAll() {
	store, remove := temporary()
	defer remove()
	client := newEngine(store)
	startThree(client) // of the workflow "job"
	effect, err := client.CancelAll(context.Background(), durable.Filter{IDPrefix: "job-"}, durable.Reason("not needed"))
	fmt.Println(effect.Matched, effect.Done, err)
	// Output: 3 3 <nil>
}

func ExampleEngine_TerminateAll() {
	store, remove := temporary()
	defer remove()
	client := newEngine(store)
	startThree(client) // of the workflow "job"
	effect, err := client.TerminateAll(context.Background(), durable.Filter{Workflow: "job", Status: []durable.Status{durable.StatusPending}})
	fmt.Println(effect.Matched, effect.Done, err)
	// Output: 3 3 <nil>
}

// startFamily starts a run "parent" with two children: "asks" is executed and waits for a signal, and "later" is not due yet.
func startFamily(engine *durable.Engine, parent *durable.Workflow[int, int], waiting <-chan struct{}) *durable.Run[int] {
	run, err := parent.Start(context.Background(), engine, 0, durable.ID("parent"))
	if err != nil {
		log.Fatal(err)
	}
	<-waiting
	return run
}

func defineFamily() (parent, child *durable.Workflow[int, int], waiting chan struct{}) {
	waiting = make(chan struct{}, 1)
	child = durable.Define("child", func(c *durable.Ctx, _ int) (int, error) {
		if err := c.Do("begin", func(context.Context) error { waiting <- struct{}{}; return nil }); err != nil {
			return 0, err
		}
		return c.Receive[int]("answer")
	})
	parent = durable.Define("parent", func(c *durable.Ctx, _ int) (int, error) {
		if _, err := c.StartChild("later", child, 0, durable.Delay(time.Hour)); err != nil {
			return 0, err
		}
		return c.Child("asks", child, 0)
	})
	return parent, child, waiting
}

// printChildren prints the children of the run, and how they are.
func printChildren(engine *durable.Engine, id string) {
	tree, err := engine.Tree(context.Background(), id)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"asks", "later"} {
		for _, child := range tree.Children {
			if child.Name == name {
				ended := child.Status == durable.StatusCancelled
				fmt.Printf("%s: cancelled %t, detached %t\n", name, ended, child.Detached)
			}
		}
	}
}

func ExampleOnlyItself() {
	store, remove := temporary()
	defer remove()
	parent, child, waiting := defineFamily()
	engine := newEngine(store, parent, child)
	ctx, stop := background(engine)
	defer stop()
	run := startFamily(engine, parent, waiting)
	if _, err := engine.Cancel(ctx, "parent", durable.OnlyItself()); err != nil {
		log.Fatal(err)
	}
	_, err := run.Result(ctx)
	fmt.Println(errors.Is(err, durable.ErrCancelled))
	printChildren(engine, "parent")
	// Output:
	// true
	// asks: cancelled false, detached true
	// later: cancelled false, detached true
}

func ExampleOnlyUnstarted() {
	store, remove := temporary()
	defer remove()
	parent, child, waiting := defineFamily()
	engine := newEngine(store, parent, child)
	ctx, stop := background(engine)
	defer stop()
	run := startFamily(engine, parent, waiting)
	if _, err := engine.Cancel(ctx, "parent", durable.OnlyUnstarted()); err != nil {
		log.Fatal(err)
	}
	_, err := run.Result(ctx)
	fmt.Println(errors.Is(err, durable.ErrCancelled))
	printChildren(engine, "parent")
	// Output:
	// true
	// asks: cancelled false, detached true
	// later: cancelled true, detached false
}
