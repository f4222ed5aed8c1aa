package rpc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/dgrdma/dgrdma/xdr"
)

// rawPeer is the other end of a connection: it sends and takes records, and knows nothing else.
type rawPeer struct {
	t  testing.TB
	nc net.Conn
}

func (p *rawPeer) send(records ...[]byte) {
	p.t.Helper()
	var all []byte
	for _, b := range records {
		all = append(all, fragment(b, true)...)
	}
	if _, err := p.nc.Write(all); err != nil {
		p.t.Error(err)
	}
}

func (p *rawPeer) receive() ([]byte, error) {
	var mark [4]byte
	if _, err := io.ReadFull(p.nc, mark[:]); err != nil {
		return nil, err
	}
	w := binary.BigEndian.Uint32(mark[:])
	if w&markLast == 0 {
		return nil, fmt.Errorf("several fragments")
	}
	b := make([]byte, w&^markLast)
	_, err := io.ReadFull(p.nc, b)
	return b, err
}

// expect takes a record, and compares it.
func (p *rawPeer) expect(what string, want []byte) {
	p.t.Helper()
	if got, err := p.receive(); err != nil || !bytes.Equal(got, want) {
		p.t.Errorf("%s: %x, %v, want %x", what, got, err, want)
	}
}

// expectEnd reads until the end of the connection.
func (p *rawPeer) expectEnd(what string) {
	p.t.Helper()
	if b, err := p.receive(); err == nil {
		p.t.Errorf("%s: %x, want the end of the connection", what, b)
	}
}

// callOf returns a call of the test program.
func callOf(xid, procedure uint32, args xdr.Marshaler) []byte {
	var e xdr.Encoder
	h := callHeader{xid: xid, program: testProgram.Number, version: testProgram.Version, procedure: procedure}
	h.append(&e)
	if args != nil {
		args.MarshalXDR(&e)
	}
	return xdr.AppendFlat(nil, e.Bytes(), e.Items())
}

// replyTo returns a reply that says success.
func replyTo(xid uint32, results xdr.Marshaler) []byte {
	var e xdr.Encoder
	h := replyHeader{xid: xid}
	h.append(&e)
	if results != nil {
		results.MarshalXDR(&e)
	}
	return xdr.AppendFlat(nil, e.Bytes(), e.Items())
}

// serveRaw connects a raw peer to a server of the test program over net.Pipe. done has what ServeConn has returned.
func serveRaw(t testing.TB, s *Server) (p *rawPeer, done chan error) {
	here, there := net.Pipe()
	done = make(chan error, 1)
	go func() { done <- s.ServeConn(there) }()
	t.Cleanup(func() { here.Close() })
	return &rawPeer{t, here}, done
}

func testServer(h *service, o *ServerOptions) *Server {
	s := NewServer(o)
	s.Handle(testProgram, h)
	return s
}
