package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// streamPatience is how long a stream may take to come up, its handshake included.
const streamPatience = 10 * time.Second

// streamConn is a TCP or TLS connection.
type streamConn interface {
	net.Conn
	CloseWrite() error
}

// stream is one side of a stream. It posts operations as blocks of it, and reads what comes
// into memory, over and over.
type stream struct {
	streamConn
	got     atomic.Uint64
	gone    chan struct{}
	readErr error
}

func newStream(c streamConn, memory []byte) *stream {
	s := &stream{streamConn: c, gone: make(chan struct{})}
	go s.read(memory)
	return s
}

func (s *stream) read(memory []byte) {
	defer close(s.gone)
	for at := 0; ; {
		n, err := s.Read(memory[at:min(at+carrierBlock, len(memory))])
		s.got.Add(uint64(n))
		if err != nil {
			if err != io.EOF {
				s.readErr = err
			}
			return
		}
		if at += n; at == len(memory) {
			at = 0
		}
	}
}

func (s *stream) Post(op *Op) (complete bool, err error) {
	_, err = s.Write(op.Bytes)
	return err == nil, err
}

// Wait returns when the other side has read everything and written everything, upon which it
// closes.
func (s *stream) Wait(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { s.Close() })()
	err := s.CloseWrite()
	if err != nil {
		s.Close()
	}
	<-s.gone
	return errors.Join(err, s.readErr)
}

func (s *stream) arrived() uint64       { return s.got.Load() }
func (s *stream) arriving() uint64      { return 0 } // who writes knows when all is there
func (s *stream) over() <-chan struct{} { return s.gone }

// streamListener awaits one stream.
type streamListener struct {
	*net.TCPListener
	tls *tls.Config // nil: plain
}

// listenStream listens at the endpoint's own port, which is where firewalls let clients in, or at any
// if another program has that.
func listenStream(at netip.AddrPort, secret bool, controller string) (acceptor, error) {
	listening := net.ListenConfig{Control: controlled(controller)} // what it accepts inherits that
	l, err := listening.Listen(context.Background(), "tcp", at.String())
	if err != nil {
		l, err = listening.Listen(context.Background(), "tcp", netip.AddrPortFrom(at.Addr(), 0).String())
	}
	if err != nil {
		return nil, err
	}
	s := &streamListener{TCPListener: l.(*net.TCPListener)}
	if secret {
		if s.tls, err = certified(); err != nil {
			l.Close()
			return nil, err
		}
	}
	return s, nil
}

func (l *streamListener) stop() { l.Close() }

func (l *streamListener) port() uint32 { return uint32(l.Addr().(*net.TCPAddr).Port) }

// accept takes the stream of who is at that address, and of nobody else.
func (l *streamListener) accept(ctx context.Context, from dgrdma.Addr, memory []byte) (rival, error) {
	until := time.Now().Add(streamPatience)
	l.SetDeadline(until)
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		if whose := c.RemoteAddr().(*net.TCPAddr).AddrPort(); dgrdma.UDPAddr(whose).Host() != from.Host() {
			c.Close()
			continue
		}
		if l.tls == nil {
			return newStream(c, memory), nil
		}
		return shake(ctx, tls.Server(c, l.tls), until, memory)
	}
}

// dialStream connects to a listener.
func dialStream(ctx context.Context, from netip.Addr, to netip.AddrPort, secret bool, controller string, memory []byte) (rival, error) {
	until := time.Now().Add(streamPatience)
	dialer := net.Dialer{Deadline: until, Control: controlled(controller)}
	if !from.IsUnspecified() { // else the system chooses, as it does for datagrams
		dialer.LocalAddr = &net.TCPAddr{IP: from.AsSlice(), Zone: from.Zone()}
	}
	c, err := dialer.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	if !secret {
		return newStream(c.(*net.TCPConn), memory), nil
	}
	// Who is there is no secret: the endpoint told where to connect to.
	return shake(ctx, tls.Client(c, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}), until, memory)
}

func shake(ctx context.Context, c *tls.Conn, until time.Time, memory []byte) (rival, error) {
	c.SetDeadline(until)
	if err := c.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	c.SetDeadline(time.Time{})
	return newStream(c, memory), nil
}

// certified returns a server's configuration with a certificate that nobody need trust.
func certified() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{signed}, PrivateKey: key}}, MinVersion: tls.VersionTLS13}, nil
}
