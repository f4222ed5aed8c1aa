package siw

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
)

// proxy lies between clients and a server, over TCP. It kills connections, loses what the server says, and changes private data of
// iWARP's set-up.
type proxy struct {
	// request and reply change the private data of a client and of the server. nil leaves them alone.
	request, reply func(private []byte) []byte

	l   net.Listener
	all sync.WaitGroup

	mu      sync.Mutex
	target  string
	conns   map[*proxied]bool
	count   int  // connections that came
	loses   bool // what a server says next is lost, with its connection
	private [][]byte
}

type proxied struct{ client, server *net.TCPConn }

// reset ends both directions at once.
func (c *proxied) reset() {
	for _, side := range []*net.TCPConn{c.server, c.client} { // in this order: the client may connect again at once, from its port
		side.SetLinger(0)
		side.Close()
	}
}

// newProxy begins to listen at the host's address.
func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", hostAddr+":0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: target, conns: map[*proxied]bool{}}
	p.all.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.kill()
		p.all.Wait()
	})
	return p
}

func (p *proxy) port() int { return p.l.Addr().(*net.TCPAddr).Port }

func (p *proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		server, err := dialFrom(client.RemoteAddr().(*net.TCPAddr).Port, target)
		if err != nil { // the server is away
			client.Close()
			continue
		}
		c := &proxied{client.(*net.TCPConn), server.(*net.TCPConn)}
		p.mu.Lock()
		p.conns[c] = true
		p.count++
		p.mu.Unlock()
		p.all.Go(func() {
			var both sync.WaitGroup
			both.Go(func() { p.copy(c, c.server, c.client, p.request) })
			both.Go(func() { p.copy(c, c.client, c.server, p.reply) })
			both.Wait()
			c.client.Close()
			c.server.Close()
			p.mu.Lock()
			delete(p.conns, c)
			p.mu.Unlock()
		})
	}
}

// dialFrom dials from the port of a client, if it is free: nfsd looks at it.
func dialFrom(port int, target string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{Port: port}, Control: func(_, _ string, c syscall.RawConn) (err error) {
		controlErr := c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
		})
		return errors.Join(controlErr, err)
	}}
	if nc, err := d.Dial("tcp", target); !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
		return nc, err
	}
	return net.Dial("tcp", target)
}

// copy copies one direction. With change the private data of the first frame are changed, which is one of MPA.
func (p *proxy) copy(c *proxied, to, from *net.TCPConn, change func([]byte) []byte) {
	defer to.CloseWrite()
	if change != nil {
		if err := changePrivate(to, from, change); err != nil {
			return
		}
	}
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		p.mu.Lock()
		lost := n > 0 && from == c.server && p.loses
		p.loses = p.loses && !lost
		p.mu.Unlock()
		if lost {
			c.reset()
			return
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// changePrivate passes on a frame of set-up: 16 octets of key, flags, revision, length of the private data, and these. Those of
// revision 2 begin with IRD and ORD, which stay.
func changePrivate(to io.Writer, from io.Reader, change func([]byte) []byte) error {
	head := make([]byte, 20)
	if _, err := io.ReadFull(from, head); err != nil {
		return err
	}
	private := make([]byte, binary.BigEndian.Uint16(head[18:]))
	if _, err := io.ReadFull(from, private); err != nil {
		return err
	}
	own := 0
	if head[17] == 2 {
		own = min(4, len(private))
	}
	private = append(private[:own:own], change(private[own:])...)
	binary.BigEndian.PutUint16(head[18:], uint16(len(private)))
	_, err := to.Write(append(head, private...))
	return err
}

// kill resets all connections, and returns how many there were.
func (p *proxy) kill() (killed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.reset()
		killed++
	}
	return killed
}

// loseNext loses what a server says next, and resets that connection.
func (p *proxy) loseNext() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loses = true
}

// redirect has later connections go to another server.
func (p *proxy) redirect(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

func (p *proxy) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// keep returns a change that notes private data and leaves them alone.
func (p *proxy) keep(private []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.private = append(p.private, slices.Clone(private))
	return private
}
