package wireshark_test

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// relay stands between two ends of iWARP, and keeps what each says, frame by frame, in the order in which it passes.
type relay struct {
	t    testing.TB
	addr string

	mu          sync.Mutex
	connections []*relayed
}

// relayed is one connection.
type relayed struct {
	said   []said
	rest   [2][]byte // begin of a frame, by side: 0 initiates
	begun  [2]bool   // the set-up frame has passed
	frames [2]int
}

// said is one frame, of set-up or an FPDU.
type said struct {
	side int
	b    []byte
}

// newRelay takes connections for somebody who listens at addr.
func newRelay(t testing.TB, addr string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	r := &relay{t: t, addr: l.Addr().String()}
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", addr)
			if err != nil {
				a.Close()
				continue
			}
			c := &relayed{}
			r.mu.Lock()
			r.connections = append(r.connections, c)
			r.mu.Unlock()
			go r.pass(c, 0, a, b)
			go r.pass(c, 1, b, a)
		}
	}()
	return r
}

func (r *relay) pass(c *relayed, side int, from, to net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		r.mu.Lock()
		c.add(side, buf[:n])
		r.mu.Unlock()
		if _, lost := to.Write(buf[:n]); lost != nil || err != nil {
			break
		}
	}
	if half, ok := to.(*net.TCPConn); ok {
		half.CloseWrite()
	}
}

// add cuts what came into frames.
func (c *relayed) add(side int, b []byte) {
	c.rest[side] = append(c.rest[side], b...)
	for {
		rest, n := c.rest[side], 0
		switch {
		case !c.begun[side] && len(rest) >= 20:
			n = 20 + int(binary.BigEndian.Uint16(rest[18:]))
		case c.begun[side] && len(rest) >= 2:
			n = 2 + int(binary.BigEndian.Uint16(rest))
			n += -n&3 + 4
		}
		if n == 0 || len(rest) < n {
			return
		}
		if c.begun[side] {
			c.frames[side]++
		}
		c.begun[side] = true
		c.said = append(c.said, said{side, bytes.Clone(rest[:n])})
		c.rest[side] = rest[n:]
	}
}

// capture is a file with all that was said, each frame in a packet of its own. The n-th connection is between
// the ports 40000+n and 50000+n.
func (r *relay) capture() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var file bytes.Buffer
	w := pcapgo.NewWriter(&file)
	if err := w.WriteFileHeader(1<<18, layers.LinkTypeRaw); err != nil {
		r.t.Fatal(err)
	}
	now := time.Unix(1<<30, 0)
	for n, c := range r.connections {
		seq := [2]uint32{1000, 5000}
		packet := func(side int, syn bool, payload []byte) {
			addrs := [2]net.IP{{192, 0, 2, 1}, {192, 0, 2, 2}}
			ports := [2]layers.TCPPort{layers.TCPPort(40000 + n), layers.TCPPort(50000 + n)}
			ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: addrs[side], DstIP: addrs[1-side]}
			tcp := &layers.TCP{SrcPort: ports[side], DstPort: ports[1-side], Seq: seq[side], Ack: seq[1-side], SYN: syn, ACK: !syn || side == 1, PSH: !syn, Window: 65535}
			tcp.SetNetworkLayerForChecksum(ip)
			b := gopacket.NewSerializeBuffer()
			if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ip, tcp, gopacket.Payload(payload)); err != nil {
				r.t.Fatal(err)
			}
			now = now.Add(time.Microsecond)
			if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: now, CaptureLength: len(b.Bytes()), Length: len(b.Bytes())}, b.Bytes()); err != nil {
				r.t.Fatal(err)
			}
			seq[side] += uint32(len(payload))
			if syn {
				seq[side]++
			}
		}
		packet(0, true, nil)
		packet(1, true, nil)
		packet(0, false, nil)
		for _, s := range c.said {
			packet(s.side, false, s.b)
		}
	}
	return file.Bytes()
}
