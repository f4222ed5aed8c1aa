package bench

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// TCPServer takes streams at the address of an endpoint, for comparison. Its
// methods may be called on nil.
type TCPServer struct {
	listener net.Listener
	active   atomic.Int64
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

const (
	streamBlock = 256 << 10 // bytes per read and write
	oneWay      = 1         // what a client says first
	bothWays    = 2
)

// ServeTCP listens at the address of an endpoint.
func ServeTCP(at netip.AddrPort) (*TCPServer, error) {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	s := &TCPServer{listener: l, conns: map[net.Conn]bool{}}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.mu.Unlock()
			s.active.Add(1)
			s.wg.Add(1)
			go s.take(c)
		}
	}()
	return s, nil
}

func (s *TCPServer) busy() bool { return s != nil && s.active.Load() > 0 }

// Close ends all streams.
func (s *TCPServer) Close() {
	if s == nil {
		return
	}
	s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// take reads a stream to its end, and writes as long if asked to.
func (s *TCPServer) take(c net.Conn) {
	defer s.wg.Done()
	var writer sync.WaitGroup
	block := make([]byte, streamBlock)
	if _, err := io.ReadFull(c, block[:1]); err == nil {
		var over atomic.Bool
		if block[0] == bothWays {
			writer.Go(func() {
				out := make([]byte, streamBlock)
				for !over.Load() {
					if _, err := c.Write(out); err != nil {
						return
					}
				}
			})
		}
		for {
			if _, err := c.Read(block); err != nil {
				break
			}
		}
		over.Store(true)
	}
	writer.Wait()
	c.Close()
	s.active.Add(-1)
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// overTCP puts a load on a stream to the server for some time, and returns how many
// bytes went over in both directions, and how long that took until the last was read.
func overTCP(ctx context.Context, from netip.Addr, to netip.AddrPort, long time.Duration, both bool) (uint64, time.Duration, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice(), Zone: from.Zone()}, Timeout: 10 * time.Second}
	c, err := dialer.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	mode := []byte{oneWay}
	if both {
		mode[0] = bothWays
	}
	if _, err := c.Write(mode); err != nil {
		return 0, 0, err
	}
	p := &tcpStream{conn: c.(*net.TCPConn)}
	load := NewLoad(oneSlot(streamBlock), p, nil)
	p.readBack()
	load.Start(long)
	load.Over(ctx)
	err = load.Drain(context.WithoutCancel(ctx)) // its end closes the stream
	_, sent, _ := load.Progress()
	return sent + p.back, load.Elapsed(), err
}

// tcpStream posts operations as blocks of a stream.
type tcpStream struct {
	conn    *net.TCPConn
	reader  sync.WaitGroup
	back    uint64 // bytes from the server
	readErr error
}

func (p *tcpStream) Post(op *Op) (complete bool, err error) {
	_, err = p.conn.Write(op.Bytes)
	return err == nil, err
}

// readBack reads what comes from the server.
func (p *tcpStream) readBack() {
	p.reader.Go(func() {
		in := make([]byte, streamBlock)
		for {
			n, err := p.conn.Read(in)
			p.back += uint64(n)
			if err != nil {
				if err != io.EOF {
					p.readErr = err
				}
				return
			}
		}
	})
}

// Wait returns when the server has read everything, upon which it closes.
func (p *tcpStream) Wait(context.Context) error {
	err := p.conn.CloseWrite()
	if err != nil {
		p.conn.Close()
	}
	p.reader.Wait()
	return errors.Join(err, p.readErr)
}
