package durable

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNotReady is returned by [HealthChecks.Ready] if the engine cannot execute or control runs now. The text of an ErrNotReady
// error names the reason.
var ErrNotReady = errors.New("durable: not ready")

// readyTimeout bounds how long Ready waits for the database. Orchestrators give up after one to ten seconds.
const readyTimeout = 5 * time.Second

// HealthChecks are the checks of an engine for a load balancer or an orchestrator such as Kubernetes. See [Health].
type HealthChecks struct{ engine *Engine }

// Health returns the health checks of an engine, such as [HealthChecks.Ready]. Each check is a method that returns nil, or an
// error with the reason, so that any kind of server can call it:
//
//	func probe(check func(context.Context) error) http.HandlerFunc {
//		return func(w http.ResponseWriter, r *http.Request) {
//			if err := check(r.Context()); err != nil {
//				log.Print(err) // the text may name hosts of the database
//				http.Error(w, "unavailable", http.StatusServiceUnavailable)
//			}
//		}
//	}
//
//	mux.HandleFunc("GET /readyz", probe(durable.Health(engine).Ready))
//	mux.HandleFunc("GET /livez", probe(durable.Health(engine).Live))
func Health(e *Engine) *HealthChecks { return &HealthChecks{e} }

// Ready returns nil if the database replies within five seconds and, for an engine with Config.Workflows, [Engine.Run] is
// executing runs. Engine.Run counts as executing runs if its context has not ended, and its last heartbeat is younger than
// Config.Lease. If the engine is not ready, Ready returns [ErrNotReady], wrapped with the reason. A process that is not ready
// should get no requests, and need not be restarted.
func (h *HealthChecks) Ready(ctx context.Context) error {
	if err := h.engine.checkUsable(ctx); err != nil {
		return fmt.Errorf("health: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if _, err := h.engine.inner.Store().Now(ctx); err != nil {
		return fmt.Errorf("%w: the database does not reply: %w", ErrNotReady, err)
	}
	w := h.engine.inner.WorkerHealth()
	age := time.Since(w.LastHeartbeat)
	switch {
	case !w.HasWorkflows:
		return nil
	case w.StopError != nil:
		return fmt.Errorf("%w: Engine.Run has stopped: %w", ErrNotReady, w.StopError)
	case !w.IsRunning:
		return fmt.Errorf("%w: Engine.Run was not called, or its context has ended", ErrNotReady)
	case w.LastHeartbeat.IsZero():
		return fmt.Errorf("%w: the worker has not begun yet", ErrNotReady)
	case age > w.Lease:
		return fmt.Errorf("%w: the last heartbeat of the worker was acknowledged %v ago, which is longer than Config.Lease (%v)", ErrNotReady, age.Round(time.Millisecond), w.Lease)
	}
	return nil
}

// Live returns an error if the process should be restarted. Live then returns the error with which [Engine.Run] had to stop,
// such as [ErrMoved], wrapped in [ErrNotReady]. Live returns nil while the engine drains and while the database is not
// available, because a restart would not help. Live does not use the database.
func (h *HealthChecks) Live(ctx context.Context) error {
	if err := h.engine.checkUsable(ctx); err != nil {
		return fmt.Errorf("health: %w", err)
	}
	if err := h.engine.inner.WorkerHealth().StopError; err != nil {
		return fmt.Errorf("%w: Engine.Run has stopped: %w; restart the process", ErrNotReady, err)
	}
	return nil
}
