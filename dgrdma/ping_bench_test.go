package dgrdma

import (
	"net"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// cable is one end of a wire between two endpoints without goroutines: what the other end
// sent waits in it.
type cable struct {
	handmade
	addr   transport.Addr
	other  *cable
	frames [][]byte
	n      int
	closed bool
}

func newCable(a, b transport.Addr) (x, y *cable) {
	x, y = &cable{addr: a}, &cable{addr: b}
	x.other, y.other = y, x
	return x, y
}

func (c *cable) Recv(dst []transport.Datagram, _ time.Duration) (n int, err error) {
	if c.closed {
		return 0, net.ErrClosed
	}
	for ; n < min(c.n, len(dst)); n++ {
		dst[n].From, dst[n].Data = c.other.addr, c.frames[n]
	}
	c.n = 0
	return n, nil
}

func (c *cable) Send(batch []transport.Outgoing) (int, error) {
	o := c.other
	for i := range batch {
		if o.n == len(o.frames) {
			o.frames = append(o.frames, make([]byte, frame.MaxData))
		}
		o.frames[o.n] = append(append(o.frames[o.n][:0], batch[i].Buf...), batch[i].Rest...)
		o.n++
	}
	return len(batch), nil
}

func (c *cable) Caps() transport.Caps   { return transport.Caps{MTU: 1472, Batch: 64} }
func (c *cable) MTU(transport.Addr) int { return 1472 }
func (c *cable) Close() error           { c.closed = true; return nil }

// echoing is memory that posts a transaction for each that is completed in it, as soon as
// the one before is done.
type echoing struct {
	*Region
	conn *Conn
	t    *Transaction
	busy bool
	owed bool
	left int
}

func (m *echoing) Complete(frame.EndpointID, *frame.Message) {
	if m.left--; m.left <= 0 {
		return
	}
	if m.owed = m.busy; !m.owed {
		m.post()
	}
}

func (m *echoing) post() {
	m.busy, m.owed = true, false
	if err := m.conn.Post(m.t); err != nil {
		panic(err)
	}
}

func (m *echoing) done(_ *Transaction, err error) {
	if err != nil {
		panic(err)
	}
	if m.busy = false; m.owed {
		m.post()
	}
}

// BenchmarkPing is what a ping of 64 bytes costs one endpoint that answers from the
// callback: what is received, and what is sent. A trip is two of them.
func BenchmarkPing(b *testing.B) {
	x, y := newCable(addrA, addrB)
	var ends [2]*Endpoint
	var mems [2]*echoing
	for i, w := range []*cable{x, y} {
		r, err := NewRegion(4096)
		if err != nil {
			b.Fatal(err)
		}
		mems[i] = &echoing{Region: r}
		if ends[i], err = New(w, &Config{ID: frame.EndpointID(i + 1), Memory: mems[i], Manual: true}); err != nil {
			b.Fatal(err)
		}
		defer ends[i].Close()
	}
	for i, m := range mems {
		var err error
		if m.conn, err = ends[i].Connect(Peer{ID: frame.EndpointID(2 - i), Addr: []transport.Addr{addrB, addrA}[i]}); err != nil {
			b.Fatal(err)
		}
		m.t = write(64, pattern(i, 64), 0, 1)
		m.t.Done = m.done
	}
	run := func(n int) {
		for _, m := range mems {
			m.left = n + 1
		}
		mems[0].post()
		for mems[0].left > 1 {
			for _, e := range ends {
				if _, err := e.Progress(0); err != nil {
					b.Fatal(err)
				}
			}
		}
		for mems[0].left, mems[1].left = 0, 0; mems[0].busy || mems[1].busy; {
			ends[0].Progress(0)
			ends[1].Progress(0)
		}
	}
	run(100)
	b.ReportAllocs()
	b.ResetTimer()
	run(b.N)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/way")
}
