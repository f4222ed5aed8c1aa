package tap

import (
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/transport"
)

// Defaults of [Options].
const (
	DefaultEtherType = 0xf042
	DefaultSnapLen   = 262144 // as tcpdump
)

// Options of a recording. Zero values mean the defaults.
type Options struct {
	EtherType uint16           // of frames that are not in UDP
	SnapLen   int              // bytes kept of each datagram with its headers
	Now       func() time.Time // called under a mutex; default time.Now
}

// Conn is a [transport.Conn] that records the traffic of the one it wraps, and is
// like it in everything else. Close closes the wrapped one, not the writer.
type Conn struct {
	transport.Conn
	local    transport.Addr
	headroom int
	opts     Options

	mu     sync.Mutex
	w      io.Writer
	buf    []byte // records of one batch
	joined []byte // a frame of several pieces
	err    error  // of the writer; ends the recording
}

// New wraps c and writes the file header to w. It fails if that fails.
func New(c transport.Conn, w io.Writer, opts Options) (*Conn, error) {
	if opts.EtherType == 0 {
		opts.EtherType = DefaultEtherType
	}
	if opts.SnapLen <= 0 {
		opts.SnapLen = DefaultSnapLen
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	t := &Conn{Conn: c, local: c.LocalAddr(), headroom: c.Caps().Headroom, opts: opts, w: w}
	t.buf = appendFileHeader(t.buf, opts.SnapLen)
	t.flush()
	if t.err != nil {
		return nil, t.err
	}
	return t, nil
}

// Recv implements [transport.Conn].
func (t *Conn) Recv(dst []transport.Datagram, wait time.Duration) (int, error) {
	n, err := t.Conn.Recv(dst, wait)
	if n > 0 {
		t.recordReceived(dst[:n])
	}
	return n, err
}

// Send implements [transport.Conn].
func (t *Conn) Send(batch []transport.Outgoing) (int, error) {
	if len(batch) > 0 {
		t.recordSent(batch)
	}
	return t.Conn.Send(batch)
}

// Err returns the error that ended the recording, or nil.
func (t *Conn) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

func (t *Conn) recordReceived(batch []transport.Datagram) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return
	}
	now := t.opts.Now()
	for i := range batch {
		t.record(now, batch[i].From, t.at(batch[i].From), batch[i].Data)
	}
	t.flush()
}

func (t *Conn) recordSent(batch []transport.Outgoing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return
	}
	now := t.opts.Now()
	for i := range batch {
		o := &batch[i]
		if len(o.Buf) < t.headroom {
			continue // the wrapped Conn complains
		}
		frame := o.Buf[t.headroom:]
		if len(o.Rest)+len(o.Tail) > 0 {
			t.joined = append(append(append(t.joined[:0], frame...), o.Rest...), o.Tail...)
			frame = t.joined
		}
		t.record(now, t.at(*o.To), *o.To, frame)
	}
	t.flush()
}

// at returns our address as that peer knows it.
func (t *Conn) at(peer transport.Addr) transport.Addr {
	if ip := peer.Local(); ip.IsValid() {
		return transport.UDPAddr(netip.AddrPortFrom(ip, t.local.AddrPort().Port()))
	}
	return t.local
}

func (t *Conn) record(now time.Time, from, to transport.Addr, frame []byte) {
	start := len(t.buf)
	t.buf = append(t.buf, make([]byte, recordHeaderSize)...)
	t.buf = appendPacket(t.buf, from, to, t.opts.EtherType, frame)
	t.buf = finishRecord(t.buf, start, now, t.opts.SnapLen)
}

// flush writes what was recorded, in one piece so that the file ends with a
// whole record.
func (t *Conn) flush() {
	n, err := t.w.Write(t.buf)
	if err == nil && n < len(t.buf) {
		err = io.ErrShortWrite
	}
	t.err = err
	t.buf = t.buf[:0]
}
