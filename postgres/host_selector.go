package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A URL may name several hosts: a primary and its standbys. pgx tries them one after the other, and a
// machine that hangs accepts connections but never replies. So if a URL names several hosts:
//
//   - The store tries all hosts at the same time, repeatedly, and connects to the first that takes
//     writes.
//   - If a call has no reply for a second, the store searches again. If another host takes writes now,
//     all calls on other hosts are cancelled and retried there.
const (
	connectTimeout            = 5 * time.Second        // unless the URL sets another one
	poolDefaultConnectTimeout = 2 * time.Minute        // what pgxpool sets if the URL sets none
	maxHostSearchWait         = 5 * time.Second        // after this time, the calls that need a host return an error
	hostTryInterval           = 25 * time.Millisecond  // between the first tries of the hosts, so that the URL's order is a preference
	firstHostRetryDelay       = 50 * time.Millisecond  // first pause between two tries of a host
	maxHostRetryDelay         = 200 * time.Millisecond // longest such pause, shorter than a failover
	hostSearchResultTTL       = 200 * time.Millisecond // how long the result of a search is reused
)

// hostSelector selects, among the hosts of a URL that names several, the one that takes writes.
type hostSelector struct {
	lifeCtx      context.Context
	searches     sync.WaitGroup // the searches in progress; Close of the store waits for them
	onHostChange func()         // called when another host takes writes

	mu             sync.Mutex
	config         *pgx.ConnConfig // the configuration of the latest connection, because credentials may rotate
	latestSearch   *hostSearch     // in progress, or the last one
	openCalls      map[*hostCall]struct{}
	flushTimeout   time.Duration // timeout of the next flush; zero: hostSearchAfterSilence
	currentAddress string        // address of the host that was found last
	name           string        // its name in the URL
	closed         bool
}

// hostSearch is one search for the host that takes writes. Several calls may wait for it.
type hostSearch struct {
	done       chan struct{}
	endedAt    time.Time // this field and the next ones are read after done is closed
	foundHosts []*pgconn.FallbackConfig
	address    string
	err        error
}

// newHostSelectorIfSeveralHosts returns the hosts of a configuration, or nil if it names only one.
func newHostSelectorIfSeveralHosts(cfg *pgxpool.Config) *hostSelector {
	if len(groupAddressesByHost(cfg.ConnConfig)) < 2 {
		return nil
	}
	return &hostSelector{openCalls: make(map[*hostCall]struct{})}
}

// allowSearches allows searches until life ends. A search calls moved when another host takes writes.
func (h *hostSelector) allowSearches(life context.Context, moved func()) {
	if h != nil {
		h.lifeCtx, h.onHostChange = life, moved
	}
}

// configurePool makes the connections of a pool lead to the host that takes writes.
func (h *hostSelector) configurePool(cfg *pgxpool.Config) {
	if h == nil {
		return
	}
	users, bye := cfg.BeforeConnect, cfg.BeforeClose
	cfg.BeforeConnect = func(ctx context.Context, one *pgx.ConnConfig) error {
		if users != nil { // the user's hook sets credentials that rotate
			if err := users(ctx, one); err != nil {
				return err
			}
		}
		return h.setWriterHost(ctx, one)
	}
	cfg.BeforeClose = func(conn *pgx.Conn) {
		if bye != nil {
			bye(conn)
		}
		_ = conn.PgConn().Conn().SetDeadline(time.Now().Add(closeTimeout)) // the connection is closed in any case
	}
	if hasNoConnectTimeout(cfg.ConnConfig) {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
}

// groupAddressesByHost groups the addresses of a configuration by host. A host has several addresses if its TLS is optional.
func groupAddressesByHost(cfg *pgx.ConnConfig) (groups [][]*pgconn.FallbackConfig) {
	all := append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}}, cfg.Fallbacks...)
	place := make(map[string]int)
	for _, one := range all {
		key := one.Host + " " + strconv.Itoa(int(one.Port))
		i, known := place[key]
		if !known {
			i = len(groups)
			place[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], one)
	}
	return groups
}

// formatHostNames returns the name of a host for errors.
func formatHostNames(group []*pgconn.FallbackConfig) string {
	return net.JoinHostPort(group[0].Host, strconv.Itoa(int(group[0].Port)))
}

// addressOf returns the address of a connection's host, or an empty text if there is only one host.
func (h *hostSelector) addressOf(conn *pgx.Conn) string {
	if h == nil {
		return ""
	}
	return addressOf(conn.PgConn(), conn.Config().Host, conn.Config().Port)
}

// addressOf returns the address of a connection's host.
func addressOf(conn *pgconn.PgConn, host string, port uint16) string {
	addr := conn.Conn().RemoteAddr()
	if addr.Network() == "unix" { // the remote address may be relative
		return net.JoinHostPort(host, strconv.Itoa(int(port)))
	}
	return addr.String()
}

// restrictToHost restricts a configuration to one host.
func restrictToHost(cfg *pgx.ConnConfig, group []*pgconn.FallbackConfig) {
	cfg.Host, cfg.Port, cfg.TLSConfig, cfg.Fallbacks = group[0].Host, group[0].Port, group[0].TLSConfig, group[1:]
	if cfg.ValidateConnect == nil { // the engine needs a host that takes writes
		cfg.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
}

// setWriterHost sets the configuration of a new connection to the host that takes writes.
func (h *hostSelector) setWriterHost(ctx context.Context, cfg *pgx.ConnConfig) error {
	found := h.startSearch(cfg, "")
	select {
	case <-found.done:
	case <-ctx.Done():
		return fmt.Errorf("%w: %s", ctx.Err(), h.noHostReason())
	}
	if found.err != nil {
		return found.err
	}
	restrictToHost(cfg, found.foundHosts)
	boundCloseTime(cfg)
	return nil
}

// startSearch returns the search in progress, or starts one. If first is the address of the current host, the
// search tries that host slightly before the others.
func (h *hostSelector) startSearch(cfg *pgx.ConnConfig, first string) *hostSearch {
	h.mu.Lock()
	defer h.mu.Unlock()
	if cfg != nil {
		h.config = cfg.Copy()
	}
	if s := h.latestSearch; s != nil {
		select {
		case <-s.done:
			if s.err == nil && first == "" && time.Since(s.endedAt) < hostSearchResultTTL {
				return s
			}
		default:
			return s
		}
	}
	s := &hostSearch{done: make(chan struct{})}
	if h.closed || h.config == nil {
		s.err = errors.New("the store is closed")
		close(s.done)
		return s
	}
	h.latestSearch = s
	config, known := h.config, ""
	if first != "" && first == h.currentAddress {
		known = h.name
	}
	h.searches.Go(func() { h.runSearch(s, config, known) })
	return s
}

// discardSearchResult discards the result of the last search if a connection to the host that it found has failed with err, and
// reports whether a new search may find another host.
func (h *hostSelector) discardSearchResult(err error) bool {
	var failed *pgconn.ConnectError
	if h == nil || !errors.As(err, &failed) || isPermanentRefusal(err) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.latestSearch
	if s == nil {
		return true // another call has discarded it
	}
	select {
	case <-s.done:
	default:
		return true // waits for the search in progress
	}
	if s.err != nil {
		return false // no host takes writes
	}
	h.latestSearch = nil
	return true
}

// runSearch executes a search.
func (h *hostSelector) runSearch(s *hostSearch, cfg *pgx.ConnConfig, first string) {
	ctx, cancel := context.WithTimeout(h.lifeCtx, maxHostSearchWait)
	defer cancel()
	groups := groupAddressesByHost(cfg)
	type hostReply struct {
		group int
		where string
		err   error
	}
	replies := make(chan hostReply)
	var tries sync.WaitGroup
	for i, group := range groups {
		head := time.Duration(i) * hostTryInterval
		if first != "" && formatHostNames(group) != first { // the first host may only be busy
			head += 2 * hostTryInterval
		}
		tries.Go(func() {
			for wait, pause := firstHostRetryDelay, head; sleepCtx(ctx, pause); wait = min(2*wait, maxHostRetryDelay) {
				pause = wait
				where, err := probeWriterHost(ctx, cfg, group)
				select {
				case replies <- hostReply{i, where, err}:
				case <-ctx.Done():
					return
				}
				if err == nil || isPermanentRefusal(err) {
					return
				}
			}
		})
	}
	go func() {
		tries.Wait()
		close(replies)
	}()
	causes := make([]error, len(groups))
	for a := range replies {
		if a.err == nil && s.foundHosts == nil {
			s.foundHosts, s.address = groups[a.group], a.where
			cancel()
		}
		causes[a.group] = a.err
		h.recordSearchErrors(s, groups, causes)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.endedAt = time.Now()
	if s.foundHosts == nil {
		s.err = noHostError(groups, causes)
	}
	close(s.done)
	if s.err != nil {
		return
	}
	left := h.currentAddress != "" && h.currentAddress != s.address
	h.currentAddress, h.name = s.address, formatHostNames(s.foundHosts)
	for c := range h.openCalls {
		if c.address != s.address && (c.address != "" || c.wasSilent) {
			left = left || c.address != ""
			c.hostChanged.Store(true)
			c.cancel(errHostChanged)
		}
	}
	if left {
		h.searches.Go(h.onHostChange)
	}
}

// recordSearchErrors records the errors that a search in progress has met so far.
func (h *hostSelector) recordSearchErrors(s *hostSearch, groups [][]*pgconn.FallbackConfig, causes []error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.err = nil
	if s.foundHosts == nil {
		s.err = noHostError(groups, causes)
	}
}

// noHostError returns why no host was found.
func noHostError(groups [][]*pgconn.FallbackConfig, causes []error) error {
	err := errors.New("no host takes writes")
	for i, group := range groups {
		if causes[i] == nil {
			err = fmt.Errorf("%w; %s does not reply", err, formatHostNames(group))
		} else {
			err = fmt.Errorf("%w; %s: %w", err, formatHostNames(group), causes[i])
		}
	}
	return err
}

// noHostReason returns why there is no host, or an empty text if there is one.
func (h *hostSelector) noHostReason() string {
	if h == nil {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.latestSearch == nil || h.latestSearch.err == nil {
		return ""
	}
	return strings.ReplaceAll(h.latestSearch.err.Error(), "\n", " ")
}

// isPermanentRefusal reports whether an immediate retry would fail in the same way.
func isPermanentRefusal(err error) bool { return hasSQLState(err, "28P01", "28000", "3D000", "42501") }

// probeWriterHost connects to one host, to find out whether it takes writes, and returns its address.
func probeWriterHost(ctx context.Context, cfg *pgx.ConnConfig, group []*pgconn.FallbackConfig) (where string, err error) {
	one := cfg.Copy()
	restrictToHost(one, group)
	boundCloseTime(one)
	if one.ConnectTimeout <= 0 {
		one.ConnectTimeout = connectTimeout
	}
	conn, err := pgconn.ConnectConfig(ctx, &one.Config)
	if err != nil {
		return "", err
	}
	where = addressOf(conn, one.Host, one.Port)
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = conn.Close(bye) // the socket is closed in any case
	return where, nil
}

// close waits for the searches to end. It is called when no call is in progress any more.
func (h *hostSelector) close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.searches.Wait()
}

// sleepCtx waits for d, and reports whether ctx is still active then.
func sleepCtx(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
