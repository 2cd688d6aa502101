package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// On a Citus, a schema may lie on one node as a whole, its home. Through another node, a pipeline without BEGIN is not one
// transaction, settings do not apply to the next statement, and advisory locks, notifications and pg_locks belong to that other node.
// So the store's own connections lead to the home, whichever node the URL names. Each new connection and each heartbeat checks that
// the schema is still there. A store makes no claim on a connection to another node, and does not use such a connection to find out
// which workers are dead.

// errNotAtHome is returned by a call that only the home of the schema can execute.
var errNotAtHome = errors.New("the schema lies on another node of the Citus, to which no connection can be opened")

// errSchemaMoved is returned for a new connection to the former home of the schema.
var errSchemaMoved = errors.New("the schema was moved to another node of the Citus")

// citusLocation tells where the schema of a store lies on Citus. The zero value stands for a server without Citus, or for a Citus that
// has not distributed the schema.
type citusLocation struct {
	mu            sync.Mutex
	sharded       bool // the schema lies on one node
	home          nodeAddress
	homeCtx       context.Context // ends when the schema moves; nil: not needed yet
	cancelHomeCtx context.CancelFunc
}

// nodeAddress is the address of a node as Citus itself uses it.
type nodeAddress struct {
	host string
	port uint16
}

func (a nodeAddress) String() string { return net.JoinHostPort(a.host, strconv.Itoa(int(a.port))) }

// schemaPlacement tells how Citus has distributed the schema.
type schemaPlacement struct {
	sharded bool // false: it is undistributed, and in this database
	isHere  bool
	node    nodeAddress
}

// isSchemaDistributed reports whether the schema lies on one node of several.
func (c *citusLocation) isSchemaDistributed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sharded
}

// planCacheMode returns the plan_cache_mode of the engine's sessions. Citus cannot make a generic plan of every statement.
func (c *citusLocation) planCacheMode() string {
	if c.isSchemaDistributed() {
		return "auto"
	}
	return "force_generic_plan"
}

// setHomeNodeAddress sets the home of the schema as the address of a new connection. If the schema has no home, it does not change
// the address.
func (c *citusLocation) setHomeNodeAddress(cfg *pgx.ConnConfig) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.sharded || c.home == (nodeAddress{cfg.Host, cfg.Port}) {
		return
	}
	entry := &pgconn.FallbackConfig{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}
	cfg.Fallbacks = append([]*pgconn.FallbackConfig{entry}, cfg.Fallbacks...)
	if cfg.TLSConfig != nil && cfg.TLSConfig.ServerName != "" {
		cfg.TLSConfig = cfg.TLSConfig.Clone()
		cfg.TLSConfig.ServerName = c.home.host
	}
	cfg.Host, cfg.Port = c.home.host, c.home.port
}

// recordPlacement records a placement, and reports whether the schema has moved.
func (c *citusLocation) recordPlacement(p schemaPlacement) (moved bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	moved = p.sharded != c.sharded || p.node != c.home
	c.sharded, c.home = p.sharded, p.node
	if moved && c.homeCtx != nil {
		c.cancelHomeCtx()
		c.homeCtx = nil
	}
	return moved
}

// contextUntilSchemaMove returns a context that ends with ctx, or when the schema moves.
func (c *citusLocation) contextUntilSchemaMove(ctx context.Context) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	if c.homeCtx == nil {
		c.homeCtx, c.cancelHomeCtx = context.WithCancel(context.Background())
	}
	stay := c.homeCtx
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(stay, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// notOnHomeNodeError returns the error of a call that only the home can execute.
func (c *citusLocation) notOnHomeNodeError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Errorf("%w: %w: let this process connect to %v", store.ErrUnavailable, errNotAtHome, c.home)
}

// readCitusHomeNode reads how the Citus behind a connection has distributed the schema.
func (s *database) readCitusHomeNode(ctx context.Context, conn *pgx.Conn) (schemaPlacement, error) {
	p, err := s.scanCitusHomeNode(conn.QueryRow(ctx, s.statements.citusHomeNode, pgx.QueryExecModeExec))
	if errors.Is(err, pgx.ErrNoRows) {
		return schemaPlacement{}, nil
	}
	return p, err
}

// scanCitusHomeNode scans a row of citus_home_node.sql.
func (s *database) scanCitusHomeNode(row pgx.Row) (p schemaPlacement, err error) {
	var method string
	var port int32
	if err := row.Scan(&method, &p.isHere, &p.node.host, &port); err != nil {
		return schemaPlacement{}, err
	}
	if method != "n" {
		return schemaPlacement{}, fmt.Errorf("%w: Citus has distributed the tables of the schema %q: undistribute them, or let Citus keep the whole schema on one node, with citus.enable_schema_based_sharding", durable.ErrInvalidConfig, s.schema)
	}
	p.sharded, p.node.port = true, uint16(port)
	return p, nil
}

// findHomeNode finds the home of the schema when the store is opened. Each heartbeat checks it. If the schema has moved, the present
// connections are closed as soon as they are released.
func (s *database) findHomeNode(ctx context.Context) error {
	conn, err := s.acquireConn(ctx, s.enginePool)
	if err != nil {
		return s.wrapError(ctx, "find the home of the schema", err)
	}
	p, err := s.readCitusHomeNode(ctx, conn.Conn())
	s.releaseConn(s.enginePool, conn)
	if err != nil {
		return s.wrapError(ctx, "find the home of the schema", err)
	}
	s.reconnectIfSchemaMoved(p)
	return nil
}

// reconnectIfSchemaMoved records a placement. If the schema has moved, the present connections are closed, and the known position in the
// history of the database is discarded, because positions of another server follow. It reports whether the schema has moved.
func (s *database) reconnectIfSchemaMoved(p schemaPlacement) (moved bool) {
	if !s.citus.recordPlacement(p) {
		return false
	}
	s.rewindDetector.forgetPosition()
	s.reconnect()
	return true
}

// connOffHomeNodeKey is the key under which a connection records that it leads to a node other than the home of the schema.
const connOffHomeNodeKey = "durable.away"

// checkHomeNode checks where a new connection leads. It returns errSchemaMoved if another connection would lead to the home.
func (s *database) checkHomeNode(ctx context.Context, conn *pgx.Conn) error {
	if !s.citus.isSchemaDistributed() {
		return nil
	}
	p, err := s.readCitusHomeNode(ctx, conn)
	if err != nil {
		return err
	}
	if s.reconnectIfSchemaMoved(p) {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, errSchemaMoved)
	}
	if !p.isHere {
		conn.PgConn().CustomData()[connOffHomeNodeKey] = true
	}
	return nil
}

// WrongCitusNodeError is returned by a Tx step on a Citus cluster if the pool that was given to New leads to another node than the schema's
// home. A run whose step returns a WrongCitusNodeError does not fail, but is executed again later. To fix it, give New a pool that leads to
// the schema's home, or use Open, whose pool follows the schema.
type WrongCitusNodeError struct {
	Schema string
	Home   string // host and port, as Citus itself uses them
}

// Error returns a message that names the schema and its home node.
func (e *WrongCitusNodeError) Error() string {
	return fmt.Sprintf("the schema %q lies on the node %s of the Citus, and the pool of Tx steps leads to another one: let it lead there, or use Open instead of New", e.Schema, e.Home)
}

// checkUserConnOnHomeNode returns a *WrongCitusNodeError if a connection of the user's pool leads to another node than the home of the
// schema, because such a connection does not show whether the home has gone back in its history.
func (s *database) checkUserConnOnHomeNode(ctx context.Context, conn *pgx.Conn) error {
	if !s.citus.isSchemaDistributed() {
		return nil
	}
	p, err := s.readCitusHomeNode(ctx, conn)
	if err != nil {
		return s.wrapError(ctx, "look where the schema is", err)
	}
	if p.sharded && !p.isHere {
		return fmt.Errorf("postgres: begin: %w: %w", store.ErrRejected, &WrongCitusNodeError{Schema: s.schema, Home: p.node.String()})
	}
	return nil
}

// isOffHomeNode reports whether a connection leads to a node that is not the home of the schema.
func isOffHomeNode(conn *pgx.Conn) bool { return conn.PgConn().CustomData()[connOffHomeNodeKey] != nil }

// runBatchOnHomeNode does the same as runBatch for statements that only the home of the schema can execute. On Citus it checks in the
// same transaction that the connection leads to the home, after the statements have locked the tables that a move of the schema would
// have to lock.
func (s *database) runBatchOnHomeNode(ctx context.Context, what string, fill func(*pgx.Batch), read func(statementResults) error) error {
	conn, err := s.acquireConn(ctx, s.enginePool)
	if err != nil {
		return s.wrapError(ctx, what, err)
	}
	defer s.releaseConn(s.enginePool, conn)
	if isOffHomeNode(conn.Conn()) {
		_ = conn.Conn().Close(ctx) // the next connection may lead to the home
		return fmt.Errorf("postgres: %s: %w", what, s.citus.notOnHomeNodeError())
	}
	if !s.citus.isSchemaDistributed() {
		return s.runBatchOnConn(ctx, conn, what, fill, read)
	}
	var p schemaPlacement
	err = s.runBatchOnConn(ctx, conn, what, func(batch *pgx.Batch) {
		fill(batch)
		batch.Queue(s.statements.citusHomeNode)
	}, func(res statementResults) error {
		if err := read(res); err != nil {
			return err
		}
		return eachRow(res, func(rows pgx.Rows) (err error) {
			p, err = s.scanCitusHomeNode(rows)
			return err
		})
	})
	if err != nil {
		return err
	}
	s.reconnectIfSchemaMoved(p)
	if !p.isHere {
		return fmt.Errorf("postgres: %s: %w", what, s.citus.notOnHomeNodeError())
	}
	return nil
}

// splitStatements splits the text of a migration into its statements, because Citus executes one at a time.
func splitStatements(text string) (all []string) {
	from := 0
	for i := 0; i < len(text); i++ {
		closing := ""
		switch rest := text[i:]; {
		case text[i] == ';':
			if one := strings.TrimSpace(text[from:i]); one != "" {
				all = append(all, one)
			}
			from = i + 1
		case strings.HasPrefix(rest, "--"):
			closing = "\n"
		case text[i] == '\'' || text[i] == '"':
			closing = text[i : i+1]
		case strings.HasPrefix(rest, "$$"):
			closing = "$$"
		}
		if closing == "" {
			continue
		}
		start := i + len(closing)
		if closing == "\n" {
			start = i
		}
		end := strings.Index(text[start:], closing)
		if end < 0 {
			break
		}
		i = start + end + len(closing) - 1
	}
	if one := strings.TrimSpace(text[from:]); one != "" {
		all = append(all, one)
	}
	return all
}
