// Package testproxy is a proxy for tests: it holds bytes back, freezes, cuts connections, and
// counts the traffic.
//
// It imports the standard library. Only tests import it.
package testproxy

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy is before one server.
type Proxy struct {
	listener net.Listener
	server   url.URL
	wait     sync.WaitGroup

	mu     sync.Mutex
	delay  time.Duration
	frozen chan struct{} // closed by Thaw; nil means that it is not frozen
	cut    bool
	open   map[net.Conn]struct{}
	counts []*traffic // of all connections
	each   int64      // bytes of answers after which a connection is cut; 0: none

	answered atomic.Int64
}

// New starts a proxy in front of the server of the URL, until the test ends.
func New(t testing.TB, server string) *Proxy {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, server: *u, open: map[net.Conn]struct{}{}}
	p.wait.Go(p.accept)
	t.Cleanup(func() {
		p.listener.Close() //nolint:errcheck // nothing to lose
		p.Thaw()
		p.Cut()
		p.wait.Wait()
	})
	return p
}

// URL is the server's through the proxy.
func (p *Proxy) URL() string {
	u := p.server
	u.Host = p.listener.Addr().String()
	return u.String()
}

// Slow has everything pass so much later.
func (p *Proxy) Slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

// Freeze holds everything back until Thaw: the connections stay open.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen == nil {
		p.frozen = make(chan struct{})
	}
}

// Thaw lets everything pass that was held back.
func (p *Proxy) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
}

// Cut closes all connections, and each new one at once, until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.open {
		c.Close() //nolint:errcheck // nothing to lose
	}
}

// CutEach cuts each connection once so many bytes of answers have passed.
func (p *Proxy) CutEach(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.each = bytes
}

// Answered is the number of bytes that the server has sent.
func (p *Proxy) Answered() int64 { return p.answered.Load() }

// Heal lets connections be opened again.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

func (p *Proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wait.Go(func() { p.serve(in) })
	}
}

func (p *Proxy) serve(in net.Conn) {
	p.pause()
	if !p.keep(in) {
		return
	}
	out, err := net.Dial("tcp", p.server.Host)
	if err != nil || !p.keep(out) {
		p.drop(in)
		return
	}
	var ways sync.WaitGroup
	count := p.count()
	ways.Go(func() { p.relay(out, in, func(text []byte) bool { count.pass(&count.sent, text); return true }) })
	passed := int64(0)
	ways.Go(func() {
		p.relay(in, out, func(text []byte) bool {
			count.pass(&count.answer, text)
			passed += int64(len(text))
			p.answered.Add(int64(len(text)))
			return p.each == 0 || passed < p.each
		})
	})
	ways.Wait()
}

func (p *Proxy) count() *traffic {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := newTraffic()
	p.counts = append(p.counts, t)
	return t
}

func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		c.Close() //nolint:errcheck // nothing to lose
		return false
	}
	p.open[c] = struct{}{}
	return true
}

func (p *Proxy) drop(list ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range list {
		c.Close() //nolint:errcheck // nothing to lose
		delete(p.open, c)
	}
}

func (p *Proxy) pause() {
	p.mu.Lock()
	frozen, delay := p.frozen, p.delay
	p.mu.Unlock()
	time.Sleep(delay)
	if frozen != nil {
		<-frozen
	}
}

func (p *Proxy) relay(to, from net.Conn, seen func(text []byte) (more bool)) {
	defer p.drop(to, from)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.pause()
		if n > 0 {
			more := seen(buf[:n])
			if _, err := to.Write(buf[:n]); err != nil || !more {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
