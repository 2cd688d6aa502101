package durablecli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable/internal/wording"
	"github.com/seed8ec063be/durable/ui"
)

// The bounds of the server of the dashboard.
const (
	headerTimeout = 10 * time.Second
	finishTimeout = 5 * time.Second // how long requests under way may take when the command is interrupted
)

func uiCommand(f *globalFlags) []*cobra.Command {
	var listen, actor string
	var hosts []string
	var readOnly bool
	cmd := &cobra.Command{
		Use: "ui", GroupID: groupLook, Args: cobra.NoArgs,
		Short: "Serve the dashboard to a browser on this machine",
		Long: "Serve the dashboard to a browser on this machine, and write its address. The address contains a secret, which permits all acts:\n" +
			"who opens it acts in your name. Interrupt the command to end it; then the address is void.\n\n" +
			"To see the dashboard of a distant machine, forward the port: ssh -L 8080:127.0.0.1:8080 HOST durable ui --listen 127.0.0.1:8080",
		Example: "  durable ui --file shop.db\n  durable ui --listen 127.0.0.1:8080 --read-only",
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "the loopback address and port; port 0: any that is free")
	cmd.Flags().StringSliceVar(&hosts, "allow-host", nil, "further names by which the browser may address the dashboard, besides localhost, 127.0.0.1 and [::1]")
	cmd.Flags().StringVar(&actor, "actor", "", "who acts (default: your user name)")
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "refuse all acts")
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		if actor == "" {
			actor = userName()
		}
		prefix := "/" + rand.Text()
		opts := []ui.Option{ui.Prefix(prefix), ui.CommandName(f.root.CommandPath()), ui.Authorize(func(*http.Request, ui.Action) (string, error) { return actor, nil })}
		if readOnly {
			opts = append(opts, ui.ReadOnly())
		}
		return s.serveUI(ctx, listen, hosts, prefix, ui.Handler(s.engine, opts...))
	})}
}

// serveUI serves the dashboard, which has the prefix, behind a guard until ctx ends.
func (s *session) serveUI(ctx context.Context, listen string, hosts []string, prefix string, dashboard http.Handler) error {
	if err := requireLoopback(listen); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("the dashboard cannot listen on %s: %w; name another port with --listen, or 127.0.0.1:0 for any that is free", listen, err)
	}
	guard := newGuard(listener.Addr(), hosts, prefix, dashboard)
	server := &http.Server{Handler: guard, ReadHeaderTimeout: headerTimeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	err = s.write("http://" + listener.Addr().String() + guard.entrancePath() + "\n")
	s.writeMessage("open this address in a browser; interrupt to end")
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-served:
			return fmt.Errorf("the dashboard ended: %w", err)
		}
	}
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	if stopped := server.Shutdown(finish); stopped != nil {
		s.writeMessage("requests were still under way after %s", wording.RoughDuration(finishTimeout))
		_ = server.Close() // it only fails to close the listener, which Shutdown has closed
	}
	if stopped := <-served; !errors.Is(stopped, http.ErrServerClosed) {
		err = errors.Join(err, stopped)
	}
	return err
}

// requireLoopback refuses addresses that other machines reach: whoever can read the address of the page from the network acts in the
// name of the user.
func requireLoopback(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return newUsageError("--listen is %q: write a loopback address with a port, as 127.0.0.1:8080", listen)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return newUsageError("--listen is %q, which other machines may reach: use 127.0.0.1, and forward the port with ssh -L, or mount ui.Handler behind your own login", listen)
	}
	return nil
}
