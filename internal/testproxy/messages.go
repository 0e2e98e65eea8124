package testproxy

import (
	"encoding/binary"
	"sync"
)

// Messages counts the messages of a PostgreSQL connection without TLS.
type Messages struct {
	// Queries are simple queries and COPYs; Executes are prepared statements.
	Queries, Executes int
	// RoundTrips is how often the server was ready for more.
	RoundTrips int
}

// Busiest returns the connection with most round trips.
func (p *Proxy) Busiest() (m Messages) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.counts {
		if n := c.messages(); n.RoundTrips > m.RoundTrips {
			m = n
		}
	}
	return m
}

// Statements returns the number of statements of all connections.
func (p *Proxy) Statements() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.counts {
		m := c.messages()
		n += m.Queries + m.Executes
	}
	return n
}

type traffic struct {
	mu           sync.Mutex
	sent, answer stream
}

func newTraffic() *traffic {
	return &traffic{sent: stream{starts: true, counts: map[byte]int{}}, answer: stream{counts: map[byte]int{}}}
}

func (t *traffic) messages() Messages {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Messages{Queries: t.sent.counts['Q'], Executes: t.sent.counts['E'], RoundTrips: t.answer.counts['Z']}
}

func (t *traffic) pass(s *stream, p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.pass(p)
}

type stream struct {
	starts bool // the next message is the first one, which has no type
	head   []byte
	rest   int // bytes of the current message
	counts map[byte]int
}

func (s *stream) pass(p []byte) {
	const sizeBytes = 4
	for len(p) > 0 {
		if s.rest > 0 {
			n := min(s.rest, len(p))
			p, s.rest = p[n:], s.rest-n
			continue
		}
		want := 1 + sizeBytes
		if s.starts {
			want = sizeBytes
		}
		n := min(want-len(s.head), len(p))
		s.head, p = append(s.head, p[:n]...), p[n:]
		if len(s.head) < want {
			return
		}
		if !s.starts {
			s.counts[s.head[0]]++
		}
		s.rest = int(binary.BigEndian.Uint32(s.head[want-sizeBytes:])) - sizeBytes
		s.starts, s.head = false, s.head[:0]
	}
}
