package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed8ec063be/durable"
)

func ExampleAll() {
	store, remove := temporary()
	defer remove()
	search := durable.Define("search", func(c *durable.Ctx, word string) ([]string, error) {
		var found []*durable.Future[string]
		for _, shelf := range []string{"left", "right"} {
			found = append(found, c.Go(shelf, func(c *durable.Ctx) (string, error) {
				return c.Step("look", func(context.Context) (string, error) { return word + " on the " + shelf, nil })
			}))
		}
		return durable.All(found...)
	})
	fmt.Println(search.Call(context.Background(), newEngine(store, search), "novel"))
	// Output: [novel on the left novel on the right] <nil>
}

// Two of three copies are enough. The third is ended.
func ExampleQuorum() {
	store, remove := temporary()
	defer remove()
	save := durable.Define("save", func(c *durable.Ctx, _ string) (int, error) {
		write := func(c *durable.Ctx) (string, error) {
			return c.Step("write", func(context.Context) (string, error) { return "saved", nil })
		}
		here, there := c.Go("here", write), c.Go("there", write)
		far := c.Go("far", func(c *durable.Ctx) (string, error) { return "saved", c.Sleep("the line is slow", time.Hour) })
		winners, err := durable.Quorum(c, "two copies", 2, durable.CancelLosers, here, there, far)
		return len(winners), err
	})
	fmt.Println(save.Call(context.Background(), newEngine(store, save), ""))
	// Output: 2 <nil>
}

func ExampleCtx_Go() {
	store, remove := temporary()
	defer remove()
	cook := durable.Define("cook", func(c *durable.Ctx, _ int) (string, error) {
		rice := c.Go("rice", func(c *durable.Ctx) (string, error) { return "rice", c.Sleep("boil", 10*time.Millisecond) })
		sauce, err := c.Step("sauce", func(context.Context) (string, error) { return "sauce", nil })
		if err != nil {
			return "", err
		}
		boiled, err := rice.Wait()
		return boiled + " with " + sauce, err
	})
	fmt.Println(cook.Call(context.Background(), newEngine(store, cook), 0))
	// Output: rice with sauce <nil>
}

// Every item is executed, and the errors of those that failed are joined.
func ExampleCollect() {
	store, remove := temporary()
	defer remove()
	check := durable.Define("check", func(c *durable.Ctx, urls []string) (int, error) {
		_, err := c.Map("urls", urls, func(_ context.Context, url string) (bool, error) {
			if url == "b" {
				return false, errors.New("unreachable")
			}
			fmt.Println(url, "works")
			return true, nil
		}, durable.Collect(), durable.Parallel(1))
		return 0, err
	})
	_, err := check.Call(context.Background(), newEngine(store, check), []string{"a", "b", "c"}, durable.ID("check-1"))
	fmt.Println(err != nil)
	// Output:
	// a works
	// c works
	// true
}

// The steps of the items are named by what Key returns.
func ExampleKey() {
	store, remove := temporary()
	defer remove()
	type user struct{ Name, Mail string }
	invite := durable.Define("invite", func(c *durable.Ctx, users []user) (int, error) {
		sent, err := c.Map("mail", users, func(_ context.Context, u user) (string, error) { return u.Mail, nil },
			durable.Key(func(u user) string { return u.Name }))
		return len(sent), err
	})
	engine := newEngine(store, invite)
	ctx := context.Background()
	users := []user{{"ada", "ada@example.org"}, {"rob", "rob@example.org"}}
	if _, err := invite.Call(ctx, engine, users, durable.ID("invite-1")); err != nil {
		log.Fatal(err)
	}
	history, err := engine.History(ctx, "invite-1")
	if err != nil {
		log.Fatal(err)
	}
	for _, checkpoint := range history {
		if checkpoint.Kind == durable.KindStep {
			fmt.Println(checkpoint.Name)
		}
	}
	// Unordered output:
	// mail/ada
	// mail/rob
}

func ExampleItemOptions() {
	store, remove := temporary()
	defer remove()
	fetch := durable.Define("fetch", func(c *durable.Ctx, pages []string) ([]string, error) {
		return c.Map("pages", pages, func(ctx context.Context, page string) (string, error) {
			if durable.Attempt(ctx) == 1 {
				return "", errors.New("unreachable")
			}
			return "content of " + page, nil
		}, durable.ItemOptions(durable.Retry(durable.Fixed(time.Millisecond, 3))))
	})
	fmt.Println(fetch.Call(context.Background(), newEngine(store, fetch), []string{"a", "b"}))
	// Output: [content of a content of b] <nil>
}
