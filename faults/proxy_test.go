package faults

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy passes connections on to a server, and does to them what it is told.
//
// Armed with a needle, it passes the next transaction with the needle to the server, waits for the reply, and closes the
// connection instead of passing the reply on. Its weather applies to all connections, its hole to those with its needle.
type proxy struct {
	net.Listener
	network, to string
	ended       chan struct{}
	conns       sync.WaitGroup

	mu      sync.Mutex
	needle  []byte
	cuts    int
	weather weather
	clear   time.Time // until when the way is taken, by its rate
	through figures
	pit     []byte // the needle of the hole
	open    bool   // the hole is
	links   map[*link]bool
	late    *lateCommit // what happens to the next COMMIT of a marked connection; nil: nothing
}

// weather is what happens to every chunk of bytes, in either direction. Zero: nothing.
type weather struct {
	Delay time.Duration // before it goes on
	Slice int           // how many bytes go in one segment
	Rate  int           // bytes a second, of all connections together
	Reset int           // of so many chunks one is cut in half, and its connection reset
}

// figures are what a proxy has done.
type figures struct {
	Chunks, Segments, Resets, Swallowed, Lost int // Lost are connections that fell into the hole
}

// newProxy stands before the server at a URL, on TCP or on a socket, for the test's length.
func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, network: "tcp", to: u.Host, ended: make(chan struct{}), links: make(map[*link]bool)}
	if dir := u.Query().Get("host"); dir != "" {
		p.network, p.to = "unix", filepath.Join(dir, ".s.PGSQL."+u.Query().Get("port"))
	}
	p.conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.conns.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		close(p.ended)
		p.mu.Lock()
		for k := range p.links {
			k.close()
		}
		p.mu.Unlock()
		p.conns.Wait()
	})
	return p
}

// url is that of the server by way of the proxy.
func (p *proxy) url(t *testing.T, server string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = p.Addr().String()
	q := u.Query()
	q.Del("host")
	q.Del("port")
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return u.String()
}

// arm sets the needle; empty disarms. It returns how many replies were cut so far.
func (p *proxy) arm(needle string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.needle = []byte(needle)
	return p.cuts
}

// armed is the needle.
func (p *proxy) armed() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.needle
}

// brew sets the weather, and returns what was done so far.
func (p *proxy) brew(w weather) figures {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather = w
	return p.through
}

// watch marks the connections that carry the needle, from the first bytes on.
func (p *proxy) watch(needle string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pit = []byte(needle)
}

// swallow opens the hole: what the marked connections carry goes nowhere from now on, and
// they stay open. Those that are made later fall into it too, or pass.
func (p *proxy) swallow(later bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = later
	for k := range p.links {
		if k.marked {
			k.fall()
		}
	}
}

// heal closes the hole, and resets what is in it.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = false
	for k := range p.links {
		if k.fallen {
			k.fallen, k.marked = false, false
			close(k.freed)
			k.reset()
		}
	}
}

// enter counts a chunk, and returns what is to be done to it.
func (p *proxy) enter() (w weather, reset bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w = p.weather
	p.through.Chunks++
	if reset = w.Reset > 0 && p.through.Chunks%w.Reset == 0; reset {
		p.through.Resets++
	}
	return w, reset
}

// queue is how long bytes take, behind those that came before.
func (p *proxy) queue(w weather, n int) time.Duration {
	if w.Rate == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.clear.Before(now) {
		p.clear = now
	}
	p.clear = p.clear.Add(time.Duration(n) * time.Second / time.Duration(w.Rate))
	return time.Until(p.clear)
}

// link is one connection through the proxy.
type link struct {
	p              *proxy
	client, server net.Conn
	cutting        atomic.Bool // the reply in progress is not passed on
	marked         bool        // it has carried the hole's needle; under p.mu, as is fallen
	fallen         bool        // into the hole
	freed          chan struct{}
	tail           []byte // the end of what the client sent, as long as a needle
	late           atomic.Pointer[lateCommit]
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial(p.network, p.to)
	if err != nil {
		client.Close()
		return
	}
	k := &link{p: p, client: client, server: server, freed: make(chan struct{})}
	defer k.close()
	p.mu.Lock()
	p.links[k] = true
	p.mu.Unlock()
	select {
	case <-p.ended:
		return
	default:
	}
	defer func() {
		p.mu.Lock()
		delete(p.links, k)
		p.mu.Unlock()
	}()
	var replies sync.WaitGroup
	replies.Go(k.down)
	k.up()
	if k.swallows(0) {
		select { // the server does not hear that the client has gone
		case <-p.ended:
		case <-k.freed:
		}
	}
	if !k.cutting.Load() {
		server.Close()
	}
	replies.Wait()
}

func (k *link) close() {
	_ = k.client.Close()
	_ = k.server.Close()
}

// reset ends the link on both sides as a crash or a firewall does, not with a farewell.
func (k *link) reset() {
	for _, c := range []net.Conn{k.client, k.server} {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	k.close()
}

// down passes the server's replies on.
func (k *link) down() {
	defer k.client.Close()
	buffer := make([]byte, 64<<10)
	var tail messages
	for {
		n, err := k.server.Read(buffer)
		ready := tail.ready(buffer[:n])
		switch {
		case n > 0 && k.cutting.Load():
			if ready { // the transaction has ended
				return
			}
			continue
		case n > 0 && !k.delayReply():
			return
		case n > 0 && k.swallows(n):
		case n > 0 && !k.pass(k.client, buffer[:n]):
			return
		}
		if err != nil {
			return
		}
	}
}

// up passes the client's questions on.
func (k *link) up() {
	p := k.p
	var seen []byte // of the transaction under way
	buffer := make([]byte, 64<<10)
	for {
		n, err := k.client.Read(buffer)
		if n > 0 {
			chunk := buffer[:n]
			seen = append(seen, chunk...)
			// A Sync at its end makes a pipeline commit; so does a COMMIT of its own.
			ends := bytes.HasSuffix(chunk, []byte{'S', 0, 0, 0, 4}) || bytes.Contains(chunk, []byte("commit\x00")) || bytes.Contains(chunk, []byte("COMMIT\x00"))
			p.mu.Lock()
			commits := ends && (!bytes.HasPrefix(p.needle, []byte("tx ")) || bytes.Contains(bytes.ToLower(chunk), []byte("commit")))
			needle := bytes.TrimPrefix(p.needle, []byte("tx "))
			if len(needle) > 0 && commits && bytes.Contains(seen, needle) {
				p.needle = nil
				p.cuts++
				k.cutting.Store(true)
			}
			p.mu.Unlock()
			if ends && !bytes.HasPrefix(p.armed(), []byte("tx ")) {
				seen = seen[:0]
			}
			k.mark(chunk)
			if !k.delayCommit(chunk) {
				return
			}
			if !k.swallows(n) && !k.pass(k.server, chunk) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// mark looks for the hole's needle.
func (k *link) mark(chunk []byte) {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	if k.marked || len(k.p.pit) == 0 {
		return
	}
	k.tail = append(k.tail, chunk...)
	k.marked = bytes.Contains(k.tail, k.p.pit)
	k.tail = slices.Clone(k.tail[max(0, len(k.tail)-len(k.p.pit)):])
}

// swallows reports whether bytes of the link go into the hole. What has fallen into it
// once never gets out.
func (k *link) swallows(n int) bool {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	if k.p.open && k.marked {
		k.fall()
	}
	if k.fallen {
		k.p.through.Swallowed += n
	}
	return k.fallen
}

// fall is called with p.mu held.
func (k *link) fall() {
	if !k.fallen {
		k.fallen = true
		k.p.through.Lost++
	}
}

// pass writes a chunk in the weather that is. It returns false if the link is over.
func (k *link) pass(to net.Conn, chunk []byte) bool {
	w, reset := k.p.enter()
	w.Delay += k.p.queue(w, len(chunk))
	if w.Delay > 0 {
		wait := time.NewTimer(w.Delay)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-k.p.ended:
			return false
		}
	}
	if reset {
		_, _ = to.Write(chunk[:len(chunk)/2])
		k.reset()
		return false
	}
	size := len(chunk)
	if w.Slice > 0 {
		size = w.Slice
	}
	segments := 0
	for piece := range slices.Chunk(chunk, size) {
		if _, err := to.Write(piece); err != nil {
			return false
		}
		segments++
	}
	k.p.mu.Lock()
	k.p.through.Segments += segments
	k.p.mu.Unlock()
	return true
}

// messages follows the server's stream of messages, which reads cut anywhere.
type messages struct {
	rest []byte
}

// ready reports whether the bytes complete a ReadyForQuery message.
func (m *messages) ready(b []byte) (ready bool) {
	m.rest = append(m.rest, b...)
	for len(m.rest) >= 5 {
		size := 1 + int(binary.BigEndian.Uint32(m.rest[1:5]))
		if len(m.rest) < size {
			break
		}
		ready = ready || m.rest[0] == 'Z'
		m.rest = m.rest[size:]
	}
	return ready
}
