package durable_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable"
)

func ExampleCtx_Signal() {
	store, remove := temporary()
	defer remove()
	shelf := durable.Define("shelf", func(c *durable.Ctx, _ string) (int, error) { return c.Receive[int]("delivered") })
	deliver := durable.Define("deliver", func(c *durable.Ctx, pieces int) (string, error) {
		if err := c.Signal("tell the shelf", "shelf-7", "delivered", pieces); err != nil {
			return "", err
		}
		err := c.Signal("tell nobody", "shelf-8", "delivered", pieces)
		return "delivered", errors.Join(err, c.SetTags("label", map[string]string{"shelf.number": "7"}))
	})
	engine := newEngine(store, shelf, deliver)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan struct{})
	go func() { defer close(done); _ = engine.Run(ctx) }()
	run, err := shelf.Start(ctx, engine, "", durable.ID("shelf-7"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = deliver.Call(ctx, engine, 12)
	fmt.Println(errors.Is(err, durable.ErrNotFound))
	fmt.Println(run.Result(ctx))
	stop()
	<-done
	// Output:
	// true
	// 12 <nil>
}

func ExampleCtx_Start() {
	store, remove := temporary()
	defer remove()
	archive := durable.Define("archive", func(_ *durable.Ctx, order string) (string, error) { return order + " is archived", nil })
	sell := durable.Define("sell", func(c *durable.Ctx, order string) (string, error) {
		return c.Start("archive it later", archive, order, durable.ID("archive-"+order)) // the started run continues when this run ends
	})
	engine := newEngine(store, sell, archive)
	ctx := context.Background()
	id, err := sell.Call(ctx, engine, "order-42")
	fmt.Println(id, err)
	fmt.Println(archive.Call(ctx, engine, "order-42", durable.ID(id)))
	// Output:
	// archive-order-42 <nil>
	// order-42 is archived <nil>
}

func ExampleCtx_Now() {
	store, remove := temporary()
	defer remove()
	stamp := durable.Define("stamp", func(c *durable.Ctx, _ int) (string, error) {
		begun, err := c.Now("begun")
		if err != nil {
			return "", err
		}
		id, err := c.UUID("id")
		if err != nil {
			return "", err
		}
		return fmt.Sprint(begun.Location(), " ", len(id)), nil
	})
	fmt.Println(stamp.Call(context.Background(), newEngine(store, stamp), 0))
	// Output: UTC 36 <nil>
}

func ExampleChild_Cancel() {
	store, remove := temporary()
	defer remove()
	listen := durable.Define("listen", func(c *durable.Ctx, _ int) (string, error) { return c.Receive[string]("word") })
	ask := durable.Define("ask", func(c *durable.Ctx, _ int) (string, error) {
		first, err := c.StartChild("first", listen, 0)
		if err != nil {
			return "", err
		}
		second, err := c.StartChild("second", listen, 0)
		if err != nil {
			return "", err
		}
		if err := errors.Join(first.Signal("answer", "word", "yes"), second.Cancel("enough")); err != nil {
			return "", err
		}
		word, err := first.Wait()
		if _, ended := second.Wait(); err == nil && !errors.Is(ended, durable.ErrCancelled) {
			err = ended
		}
		return word, err
	})
	fmt.Println(ask.Call(context.Background(), newEngine(store, ask, listen), 0))
	// Output: yes <nil>
}

func ExampleAllOrCancel() {
	store, remove := temporary()
	defer remove()
	errFull := durable.RegisterError("example.full", errors.New("no room left"))
	book := durable.Define("book", func(c *durable.Ctx, _ int) (string, error) {
		flight := c.Go("flight", func(c *durable.Ctx) (string, error) { return c.Receive[string]("confirmed") })
		hotel := c.Go("hotel", func(c *durable.Ctx) (string, error) {
			return c.Step("reserve", func(context.Context) (string, error) { return "", errFull })
		})
		_, err := durable.AllOrCancel(c, "both", flight, hotel)
		_, ended := flight.Wait()
		return fmt.Sprint(errors.Is(err, errFull), " ", errors.Is(ended, durable.ErrCancelled)), nil
	})
	fmt.Println(book.Call(context.Background(), newEngine(store, book), 0))
	// Output: true true <nil>
}
