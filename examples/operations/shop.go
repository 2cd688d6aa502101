package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

// Order is the input of an order.
type Order struct {
	Customer string
	Cents    int
	Items    []string
}

// Receipt is the output of an order.
type Receipt struct{ Payment, Parcel, Invoice string }

var errDeclined = errors.New("the bank declined the card")

// bank is the limit of the calls to the bank, over all workers.
var bank = durable.NewLimit("bank", durable.Concurrent(4), durable.Rate(20, time.Second))

// shop is the business: workflows, and what the outside world remembers of them.
type shop struct {
	mu       sync.Mutex
	declined map[string]bool // the runs whose card the bank has declined before
}

func (s *shop) workflows() []durable.Definition {
	return []durable.Definition{s.order(), s.parcel(), s.refund(), s.catalogue(), s.booking(), s.letter(), s.webhook(), s.renewal("quote"), s.report()}
}

// queues are declared by each version, the first one included: orders with a GroupKey need them.
var queues = map[string]durable.QueueSettings{
	"orders": {MaxExecuting: 8, MaxExecutingPerKey: 2},
	"mail":   {MaxExecuting: 4, Rate: durable.QueueRate{Count: 10, Period: time.Second}},
}

func (s *shop) schedules() []durable.Schedule {
	return []durable.Schedule{
		s.report().Schedule(30, durable.Schedule{Name: "report", Every: 20 * time.Second}),
		s.letter().Schedule("newsletter", durable.Schedule{Name: "newsletter", Cron: "0 8 * * MON-FRI", Location: "Europe/Berlin"}),
	}
}

// work takes some time, as a call to another service does.
func work(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// stepTaking returns a step function that takes some time and returns a value.
func stepTaking[T any](d time.Duration, value T) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) { return value, work(ctx, d) }
}

// decline declines the card of a run whose ID says so, once.
func (s *shop) decline(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.declined == nil {
		s.declined = make(map[string]bool)
	}
	if !strings.HasSuffix(id, "declined") || s.declined[id] {
		return nil
	}
	s.declined[id] = true
	return durable.Permanent(errDeclined)
}

func (s *shop) order() *durable.Workflow[Order, Receipt] {
	return durable.Define("order", func(c *durable.Ctx, o Order) (r Receipt, err error) {
		id := c.ID()
		if err := c.Compensate("release stock", func(ctx context.Context) error { return work(ctx, 40*time.Millisecond) }, durable.Undoes("reserve stock")); err != nil {
			return r, err
		}
		if err := c.Do("reserve stock", func(ctx context.Context) error { return work(ctx, 60*time.Millisecond) }); err != nil {
			return r, err
		}
		if r.Payment, err = c.Step("charge", func(ctx context.Context) (string, error) {
			if err := work(ctx, time.Duration(80+o.Cents%200)*time.Millisecond); err != nil {
				return "", err
			}
			if durable.Attempt(ctx) == 1 && o.Cents%5 == 0 {
				return "", errors.New("bank: 503 Service Unavailable")
			}
			return fmt.Sprintf("paid %d.%02d", o.Cents/100, o.Cents%100), s.decline(id)
		}, bank.Permit(durable.LimitKey(o.Customer)), durable.Retry(durable.Exponential(400*time.Millisecond, 2*time.Second, 4))); err != nil {
			return r, err
		}
		invoice := c.Go("invoice", func(c *durable.Ctx) (string, error) {
			return c.Step("print", stepTaking(120*time.Millisecond, "invoice of "+o.Customer))
		})
		if r.Parcel, err = c.Child("ship", s.parcel(), o.Items); err != nil {
			return r, err
		}
		if r.Invoice, err = invoice.Wait(); err != nil {
			return r, err
		}
		return r, c.Do("thank", func(ctx context.Context) error { return work(ctx, 20*time.Millisecond) })
	}, durable.Queue("orders"))
}

func (s *shop) parcel() *durable.Workflow[[]string, string] {
	return durable.Define("parcel", func(c *durable.Ctx, items []string) (string, error) {
		packed, err := c.Map("pack", items, func(ctx context.Context, item string) (string, error) {
			return item + " in paper", work(ctx, 50*time.Millisecond)
		}, durable.Parallel(2))
		if err != nil {
			return "", err
		}
		if err := c.Sleep("wait for the van", 1500*time.Millisecond); err != nil {
			return "", err
		}
		return c.Step("hand over", stepTaking(30*time.Millisecond, fmt.Sprintf("%d items", len(packed))))
	})
}

// refund waits for a person.
func (s *shop) refund() *durable.Workflow[int, string] {
	return durable.Define("refund", func(c *durable.Ctx, cents int) (string, error) {
		if err := c.Do("ask the desk", func(ctx context.Context) error { return work(ctx, 30*time.Millisecond) }); err != nil {
			return "", err
		}
		approved, err := c.Receive[bool]("approve", durable.Within(24*time.Hour))
		if err != nil || !approved {
			return "not refunded", err
		}
		return c.Step("pay back", stepTaking(60*time.Millisecond, fmt.Sprintf("paid back %d", cents)))
	})
}

// catalogue has many short calls, a few of which fail at first.
func (s *shop) catalogue() *durable.Workflow[int, int] {
	return durable.Define("catalogue", func(c *durable.Ctx, pages int) (int, error) {
		items := make([]int, pages)
		for i := range items {
			items[i] = i
		}
		read, err := c.Map("page", items, func(ctx context.Context, page int) (int, error) {
			if page%37 == 5 && durable.Attempt(ctx) == 1 {
				return 0, fmt.Errorf("page %d: connection reset by peer", page)
			}
			return 20 + page%7, work(ctx, time.Duration(10+page%50)*time.Millisecond)
		}, durable.Parallel(8), durable.ItemOptions(durable.Retry(durable.Fixed(300*time.Millisecond, 3))))
		return len(read), err
	})
}

// booking undoes what it has booked.
func (s *shop) booking() *durable.Workflow[string, string] {
	return durable.Define("booking", func(c *durable.Ctx, city string) (string, error) {
		for _, part := range []string{"flight", "hotel"} {
			if err := c.Compensate("cancel "+part, func(ctx context.Context) error { return work(ctx, 50*time.Millisecond) }, durable.Undoes("book "+part)); err != nil {
				return "", err
			}
			if err := c.Do("book "+part, func(ctx context.Context) error { return work(ctx, 90*time.Millisecond) }); err != nil {
				return "", err
			}
		}
		return c.Step("book a table", func(context.Context) (string, error) {
			return "", fmt.Errorf("no table in %s: the restaurant replied 409 Conflict:\n{\"error\": \"fully booked\", \"until\": \"2027-01-04\"}", city)
		})
	})
}

func (s *shop) letter() *durable.Workflow[string, string] {
	return durable.Define("letter", func(c *durable.Ctx, text string) (string, error) {
		return c.Step("send", stepTaking(50*time.Millisecond, "sent "+text))
	}, durable.Queue("mail"))
}

// webhook calls a server that is away.
func (s *shop) webhook() *durable.Workflow[string, string] {
	return durable.Define("webhook", func(c *durable.Ctx, url string) (string, error) {
		return c.Step("post", func(context.Context) (string, error) {
			return "", fmt.Errorf("post %s: dial tcp: connection refused", url)
		}, durable.Retry(durable.Exponential(2*time.Second, 10*time.Minute, durable.Unlimited)))
	})
}

// renewal has a step whose name one version of the code changed.
func (s *shop) renewal(step string) *durable.Workflow[string, string] {
	return durable.Define("renewal", func(c *durable.Ctx, customer string) (string, error) {
		price, err := c.Step(step, stepTaking(20*time.Millisecond, "19.90"))
		if err != nil {
			return "", err
		}
		if _, err := c.Receive[bool]("confirm"); err != nil {
			return "", err
		}
		return customer + " pays " + price, nil
	})
}

// report is a graph.
func (s *shop) report() *durable.Workflow[int, string] {
	return durable.DefineGraph("report", func(g *durable.Graph[int]) *durable.Node[string] {
		orders := g.Step("read orders", func(ctx context.Context, in *durable.NodeInput) ([]int, error) {
			return []int{1, 2, 3, 4, 5}, work(ctx, 200*time.Millisecond)
		})
		stock := g.Step("read stock", func(ctx context.Context, _ *durable.NodeInput) (int, error) {
			return 7, work(ctx, 700*time.Millisecond)
		})
		sums := g.Each("sum", orders, func(ctx context.Context, n int, _ *durable.NodeInput) (int, error) {
			return n * n, work(ctx, time.Duration(n)*150*time.Millisecond)
		}, durable.Parallel(2))
		return g.Step("write", func(ctx context.Context, in *durable.NodeInput) (string, error) {
			return fmt.Sprint(sums.Of(in), stock.Of(in)), work(ctx, 100*time.Millisecond)
		}, durable.Needs(sums, stock))
	})
}
