package tap_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/tap"
)

var epoch = time.Unix(1_700_000_000, 123_456_789)

func fixedClock() time.Time { return epoch }

func udp(s string) transport.Addr { return transport.UDPAddr(netip.MustParseAddrPort(s)) }

var (
	addrA = simnet.Addr(1)
	addrB = simnet.Addr(0x01020304)
)

func newTap(t *testing.T, c transport.Conn, w io.Writer, opts tap.Options) *tap.Conn {
	t.Helper()
	tapped, err := tap.New(c, w, opts)
	if err != nil {
		t.Fatal(err)
	}
	return tapped
}

func outgoing(c transport.Conn, to transport.Addr, frame []byte) transport.Outgoing {
	half, most := len(frame)/2, len(frame)*3/4 // the rest lies elsewhere, in two places
	return transport.Outgoing{To: new(to), Buf: append(make([]byte, c.Caps().Headroom), frame[:half]...), Rest: frame[half:most], Tail: frame[most:]}
}

func mustSend(t *testing.T, c transport.Conn, to transport.Addr, frames ...string) {
	t.Helper()
	var batch []transport.Outgoing
	for _, f := range frames {
		batch = append(batch, outgoing(c, to, []byte(f)))
	}
	if n, err := c.Send(batch); n != len(batch) || err != nil {
		t.Fatalf("Send: %d, %v", n, err)
	}
}

func TestBothDirectionsInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		var file bytes.Buffer
		a := newTap(t, n.Attach(addrA, simnet.Config{}), &file, tap.Options{})
		b := n.Attach(addrB, simnet.Config{})
		n.Link(addrB, addrA, simnet.Link{Latency: 1500 * time.Nanosecond})
		begin := time.Now()
		mustSend(t, a, addrB, "ask", "again")
		mustSend(t, b, addrA, "answer")
		dst := make([]transport.Datagram, 4)
		if got, err := a.Recv(dst, transport.Forever); got != 1 || err != nil || string(dst[0].Data) != "answer" {
			t.Fatalf("Recv: %d, %v", got, err)
		}
		records := parse(t, file.Bytes(), tap.DefaultSnapLen)
		macA, macB := "\x02\x00\x00\x00\x00\x01", "\x02\x00\x01\x02\x03\x04"
		want := []record{
			{begin, 17, []byte(macB + macA + "\xf0\x42ask")},
			{begin, 19, []byte(macB + macA + "\xf0\x42again")},
			{begin.Add(1500), 20, []byte(macA + macB + "\xf0\x42answer")},
		}
		wantRecords(t, records, want)
	})
}

func TestSnapLenKeepsTheOriginalLength(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	var file bytes.Buffer
	a := newTap(t, n.Attach(addrA, simnet.Config{}), &file, tap.Options{SnapLen: 16, Now: fixedClock, EtherType: 0x88b5})
	mustSend(t, a, addrB, "a long frame", "")
	wantRecords(t, parse(t, file.Bytes(), 16), []record{
		{epoch, 26, []byte("\x02\x00\x01\x02\x03\x04\x02\x00\x00\x00\x00\x01\x88\xb5a ")},
		{epoch, 14, []byte("\x02\x00\x01\x02\x03\x04\x02\x00\x00\x00\x00\x01\x88\xb5")},
	})
}

// failing takes a number of writes and then fails, or lies about the length.
type failing struct {
	bytes.Buffer
	good int
	err  error
	n    int // writes seen
}

func (f *failing) Write(p []byte) (int, error) {
	f.n++
	if f.n > f.good {
		return len(p) / 2, f.err
	}
	return f.Buffer.Write(p)
}

func TestWriterErrorEndsRecordingOnly(t *testing.T) {
	full := errors.New("disk full")
	for name, tc := range map[string]struct{ err, want error }{
		"Error":      {full, full},
		"ShortWrite": {nil, io.ErrShortWrite},
	} {
		t.Run(name, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			w := &failing{good: 2, err: tc.err}
			a := newTap(t, n.Attach(addrA, simnet.Config{}), w, tap.Options{})
			b := n.Attach(addrB, simnet.Config{})
			for range 5 {
				mustSend(t, a, addrB, "ask")
				mustSend(t, b, addrA, "answer")
				dst := make([]transport.Datagram, 4)
				for _, c := range []transport.Conn{a, b} {
					if got, err := c.Recv(dst, transport.Forever); got != 1 || err != nil {
						t.Fatalf("Recv: %d, %v", got, err)
					}
				}
			}
			if !errors.Is(a.Err(), tc.want) {
				t.Errorf("Err: %v", a.Err())
			}
			if w.n != 3 {
				t.Errorf("%d writes, want 3: none after the error", w.n)
			}
			if got := parse(t, w.Bytes(), tap.DefaultSnapLen); len(got) != 1 {
				t.Errorf("%d records", len(got))
			}
		})
	}
}

func TestNewFailsIfTheHeaderCannotBeWritten(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	broken := errors.New("broken")
	c, err := tap.New(n.Attach(addrA, simnet.Config{}), &failing{err: broken}, tap.Options{})
	if c != nil || !errors.Is(err, broken) {
		t.Errorf("New: %v, %v", c, err)
	}
}

func TestForwards(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	inner := n.Attach(addrB, simnet.Config{MTU: 9000, Headroom: 5, RecvQueue: 1})
	c := newTap(t, inner, io.Discard, tap.Options{})
	if c.Caps() != inner.Caps() || c.LocalAddr() != addrB {
		t.Errorf("%+v, %v", c.Caps(), c.LocalAddr())
	}
	mustSend(t, n.Attach(addrA, simnet.Config{}), addrB, "one", "two")
	if got := c.Stats().KernelDrops; got != 1 {
		t.Errorf("KernelDrops %d", got)
	}
	// The inner Conn is the one to complain about buffers without headroom.
	if got, err := c.Send([]transport.Outgoing{{To: new(addrA), Buf: []byte{1}}}); got != 0 || err == nil {
		t.Errorf("Send: %d, %v", got, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Recv(make([]transport.Datagram, 1), transport.Forever); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Recv: %v", err)
	}
}

func TestConcurrentSendAndRecv(t *testing.T) {
	const count = 2000
	n := simnet.New(1)
	defer n.Close()
	var file bytes.Buffer
	a := newTap(t, n.Attach(addrA, simnet.Config{}), &file, tap.Options{})
	b := n.Attach(addrB, simnet.Config{})
	var users sync.WaitGroup
	users.Go(func() {
		for range count {
			if _, err := a.Send([]transport.Outgoing{outgoing(a, addrB, []byte("ask"))}); err != nil {
				t.Error(err)
			}
		}
	})
	users.Go(func() {
		for range count {
			if _, err := b.Send([]transport.Outgoing{outgoing(b, addrA, []byte("answer"))}); err != nil {
				t.Error(err)
			}
		}
	})
	users.Go(func() {
		dst := make([]transport.Datagram, 8)
		for got := 0; got < count; {
			n, err := a.Recv(dst, transport.Forever)
			if err != nil {
				t.Error(err)
				return
			}
			got += n
			_ = a.Err()
		}
	})
	users.Wait()
	records := parse(t, file.Bytes(), tap.DefaultSnapLen)
	if len(records) != 2*count {
		t.Fatalf("%d records, want %d", len(records), 2*count)
	}
	for i := 1; i < len(records); i++ {
		if records[i].when.Before(records[i-1].when) {
			t.Fatalf("record %d is earlier than the one before", i)
		}
	}
}

func TestRecordingDoesNotAllocate(t *testing.T) {
	for name, addrs := range map[string][2]transport.Addr{
		"Sim":  {addrA, addrB},
		"IPv6": {udp("[2001:db8::1]:1"), udp("[2001:db8::2]:2")},
	} {
		t.Run(name, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			a := newTap(t, n.Attach(addrs[0], simnet.Config{}), io.Discard, tap.Options{})
			batch := []transport.Outgoing{outgoing(a, addrs[1], make([]byte, 1000))}
			got := fixture.Allocations(100, func() {
				if _, err := a.Send(batch); err != nil {
					t.Error(err)
				}
			})
			if got != 0 {
				t.Errorf("%v allocations per datagram", got)
			}
		})
	}
}

// everywhere is a transport at all addresses, which receives one frame.
type everywhere struct {
	transport.Conn
	from transport.Addr
}

func (e everywhere) LocalAddr() transport.Addr { return udp("[::]:7") }
func (e everywhere) Caps() transport.Caps      { return transport.Caps{} }
func (e everywhere) Recv(dst []transport.Datagram, _ time.Duration) (int, error) {
	dst[0] = transport.Datagram{From: e.from, Data: make([]byte, 16)}
	return 1, nil
}
func (e everywhere) Send([]transport.Outgoing) (int, error) { return 1, nil }

// TestAtAllAddresses: we are where the peer asked.
func TestAtAllAddresses(t *testing.T) {
	us := netip.MustParseAddr("198.51.100.7")
	c := everywhere{from: udp("198.51.100.2:9").WithLocal(us)}
	var file bytes.Buffer
	rec := newTap(t, c, &file, tap.Options{})
	const ahead, source, destination = 16 + 14, 12, 16 // of an IPv4 header, behind those of record and Ethernet
	for _, x := range []struct {
		at int
		do func() (int, error)
	}{
		{destination, func() (int, error) { return rec.Recv(make([]transport.Datagram, 1), 0) }},
		{source, func() (int, error) {
			return rec.Send([]transport.Outgoing{{To: &c.from, Buf: make([]byte, 16)}})
		}},
	} {
		start := file.Len()
		if n, err := x.do(); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if got := file.Bytes()[start+ahead+x.at:][:4]; netip.AddrFrom4([4]byte(got)) != us {
			t.Errorf("recorded as % x", got)
		}
	}
}
