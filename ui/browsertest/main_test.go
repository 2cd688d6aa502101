// Package browsertest tests the dashboard in a real Chromium. It is a module of its own, so that what it needs does not reach the go.sum
// of those who use the library.
//
//	make deps-ui test-ui    # installs the Debian package chromium, and executes the tests
package browsertest

import (
	"bufio"
	"context"
	"flag"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var shots = flag.String("shots", "", "the folder to which TestShots writes a picture of each page; empty: it is skipped")

// program is the folder with the program of examples/operations, built once.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	if _, err := exec.LookPath("chromium"); err != nil {
		os.Stderr.WriteString("the tests need Chromium: install it with make deps-ui\n")
		os.Exit(1)
	}
	folder, err := os.MkdirTemp("", "durable-browsertest-")
	if err == nil {
		program = filepath.Join(folder, "operations")
		build := exec.Command("go", "build", "-o", program, "./examples/operations")
		build.Dir, build.Stderr = "../..", os.Stderr
		err = build.Run()
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		os.Stderr.WriteString(err.Error() + "\n")
	}
	os.RemoveAll(folder)
	os.Exit(code)
}

// shop is a process of the example. It listens on the address, and writes the address of its dashboard.
type shop struct {
	address *url.URL
	stop    func()
}

func startShop(t *testing.T, listen string) *shop {
	t.Helper()
	cmd := exec.Command(program, "-listen", listen)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{stop: sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it fails if the process has ended, which Wait reports
		if err := cmd.Wait(); err != nil {
			t.Errorf("the shop ended with %v", err)
		}
	})}
	t.Cleanup(s.stop)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		s.address, err = url.Parse(strings.TrimSpace(line))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// url returns the address of a page of the shop, whose address ends with a slash.
func (s *shop) url(path string) string {
	return s.address.Scheme + "://" + s.address.Host + strings.TrimSuffix(s.address.Path, "/") + path
}

// browser opens the dashboard in a Chromium of its own.
func browser(t *testing.T, s *shop, width, height int, dark bool) context.Context {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.WindowSize(width, height), chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {})) // chromedp does not know all events of newer browsers
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	do(t, ctx,
		emulation.SetDeviceMetricsOverride(int64(width), int64(height), 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.Navigate(s.address.String()), chromedp.WaitVisible("main"))
	return ctx
}

func do(t *testing.T, ctx context.Context, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// eval returns the value of a JavaScript expression in the page.
func eval[T any](t *testing.T, ctx context.Context, expression string) (value T) {
	t.Helper()
	do(t, ctx, chromedp.Evaluate(expression, &value))
	return value
}

// until waits until an expression is true in the page, or a promise of true. The page may be left meanwhile.
func until(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	wait := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
	var err error
	for ctx.Err() == nil {
		var holds bool
		if err = chromedp.Run(ctx, chromedp.Evaluate("(async () => { await new Promise(r => setTimeout(r, 50)); return !!(await ("+expression+")) })()", &holds, wait)); err == nil && holds {
			return
		}
	}
	t.Fatalf("%s is never true: %v", expression, err)
}
