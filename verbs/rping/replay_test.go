package rping

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
)

// unit is what one side of a recorded connection said at a time: a set-up frame, or a frame of the stream.
type unit struct {
	initiator bool
	wire      []byte
}

// Of a frame: behind its length (2) stand control, opcode, and either STag (4) and TO (8), or the fields of an untagged message (16).
const (
	tagged       = 0x80
	write        = 0x0
	readRequest  = 0x1
	readResponse = 0x2
	taggedSize   = 2 + 14
	untaggedSize = 2 + 18
)

func (u unit) opcode() byte { return u.wire[3] & 0xf }

func (u unit) isTagged() bool { return u.wire[2]&tagged != 0 }

// payload leaves out pad and CRC.
func (u unit) payload() []byte {
	at := untaggedSize
	if u.isTagged() {
		at = taggedSize
	}
	return u.wire[at : 2+int(binary.BigEndian.Uint16(u.wire))]
}

// seal makes the CRC again.
func (u unit) seal() {
	at := len(u.wire) - 4
	binary.LittleEndian.PutUint32(u.wire[at:], crc32.Checksum(u.wire[:at], crc32.MakeTable(crc32.Castagnoli)))
}

// header is what is the same whoever says it: all but tagged addresses.
func (u unit) header() []byte {
	if u.isTagged() {
		return u.wire[:4]
	}
	return u.wire[:untaggedSize]
}

// recorded reads a capture of one connection.
func recorded(t *testing.T, name string) (all []unit) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "rdmap", "mpa", "testdata", name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	next := map[bool]uint32{}
	for p := range gopacket.NewPacketSource(r, r.LinkType()).Packets() {
		tcp, ok := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
		if !ok || len(tcp.Payload) == 0 {
			continue
		}
		ours := tcp.DstPort == 7174
		if n, known := next[ours]; known && int32(tcp.Seq-n) < 0 {
			continue // sent again
		}
		next[ours] = tcp.Seq + uint32(len(tcp.Payload))
		all = append(all, unit{ours, bytes.Clone(tcp.Payload)})
	}
	if len(all) < 2+10 {
		t.Fatalf("%s: %d frames", name, len(all))
	}
	return all
}

// captures are those of rping, and what our side wants of the connection.
var captures = []struct {
	name           string
	client, server verbs.Options
}{
	{name: "rping-rev2", client: verbs.Options{NoCRC: true}, server: verbs.Options{NoCRC: true}},
	{name: "rping-rev2-crc"},
	{name: "rping-rev2-crc-by-initiator", server: verbs.Options{NoCRC: true}},
	{name: "rping-p2p-read-crc", client: verbs.Options{PeerToPeer: true, Ready: mpa.ReadyRead}},
	{name: "rping-p2p-write-crc", client: verbs.Options{PeerToPeer: true, Ready: mpa.ReadyWrite}},
}

// replaying is a TCP connection at whose other side we are, and where the peer says what it said then.
type replaying struct {
	t       *testing.T
	nc      net.Conn
	ours    bool // the initiator is us
	request unit // our last Read Request
	tell    [][]byte
}

// play goes through the capture: what was said by the peer is said again, with addresses of ours in place of those of then, and what
// is said by us is compared.
func (r *replaying) play(all []unit) {
	r.t.Helper()
	crc := false
	for i, then := range all {
		setUp := i < 2
		if then.initiator != r.ours {
			if !setUp {
				r.readdress(then, crc)
			}
			if _, err := r.nc.Write(then.wire); err != nil {
				r.t.Fatalf("frame %d: %v", i, err)
			}
			continue
		}
		now := unit{then.initiator, make([]byte, len(then.wire))}
		if _, err := io.ReadFull(r.nc, now.wire); err != nil {
			r.t.Fatalf("frame %d: %v", i, err)
		}
		if setUp {
			if !bytes.Equal(now.wire, then.wire) {
				r.t.Errorf("set-up frame %d is\n% x, and was\n% x", i, now.wire, then.wire)
			}
			crc = then.wire[16]&0x40 != 0
			continue
		}
		r.compare(i, now, then)
	}
}

// compare holds what we say against what rping said.
func (r *replaying) compare(i int, now, then unit) {
	r.t.Helper()
	if !bytes.Equal(now.header(), then.header()) {
		r.t.Fatalf("frame %d has the header\n% x, and had\n% x", i, now.header(), then.header())
	}
	got, want := now.payload(), then.payload()
	switch {
	case now.isTagged():
		if !bytes.Equal(now.wire[4:taggedSize], then.wire[4:taggedSize]) {
			r.t.Errorf("frame %d goes to % x, and went to % x", i, now.wire[4:taggedSize], then.wire[4:taggedSize])
		}
	case now.opcode() == readRequest:
		r.request = now
		got, want = got[12:], want[12:] // the sink is ours
	case r.ours: // a Send of the client, which has its own addresses
		r.tell = append(r.tell, got[:12])
		got, want = got[12:], want[12:]
	}
	if !bytes.Equal(got, want) {
		r.t.Errorf("frame %d says\n% x, and said\n% x", i, got, want)
	}
}

// readdress puts our addresses in place of those of the capture.
func (r *replaying) readdress(u unit, crc bool) {
	turn := func() []byte { return r.tell[len(r.tell)-1] } // TO and STag, of the client's last Send
	switch op := u.opcode(); {
	case op == readResponse && len(u.payload()) > 0:
		copy(u.wire[4:taggedSize], r.request.payload()[:12])
	case op == write && len(u.payload()) > 0:
		copy(u.wire[4:8], turn()[8:])
		copy(u.wire[8:16], turn()[:8])
	case op == readRequest && len(u.payload()) == 28 && r.ours:
		p := u.payload()
		copy(p[16:20], turn()[8:])
		copy(p[20:28], turn()[:8])
	}
	if crc {
		u.seal()
	}
}

// TestServerLikeRping: to what rping's client said, our server says what rping's said.
func TestServerLikeRping(t *testing.T) {
	for _, c := range captures {
		t.Run(c.name, func(t *testing.T) {
			all := recorded(t, c.name)
			_, l := serving(t)
			nc, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			nc.SetDeadline(time.Now().Add(patience))
			got := make(chan []string, 1)
			o := c.server
			o.Strict = true
			go func() { got <- pongs(t, l, &Options{Verbs: o, Wait: patience}) }()
			r := &replaying{t: t, nc: nc}
			r.play(all)
			nc.Close()
			wantData(t, <-got)
		})
	}
}

// TestClientLikeRping: to what rping's server said, our client says what rping's said.
func TestClientLikeRping(t *testing.T) {
	for _, c := range captures {
		t.Run(c.name, func(t *testing.T) {
			all := recorded(t, c.name)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			got := make(chan []string, 1)
			o := c.client
			o.Strict = true
			go func() { got <- pings(t, l.Addr().String(), 2, &Options{Verbs: o, Wait: patience}) }()
			nc, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			nc.SetDeadline(time.Now().Add(patience))
			r := &replaying{t: t, nc: nc, ours: true}
			r.play(all)
			if n, err := nc.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("behind the last ping come %d bytes, %v", n, err)
			}
			nc.Close()
			wantData(t, <-got)
		})
	}
}

// wantData expects the two pings of the captures, in the words of rping.
func wantData(t *testing.T, got []string) {
	t.Helper()
	want := []string{
		"rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqr",
		"rdma-ping-1: BCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrs",
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("pings %q", got)
	}
}

// pings dials and pings so many times, and returns what came back.
func pings(t *testing.T, address string, n int, o *Options) (all []string) {
	h, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Error(err)
		return nil
	}
	defer h.Close()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	c, err := Dial(ctx, h, "tcp:"+address, DefaultSize, o)
	if err != nil {
		t.Error(err)
		return nil
	}
	for range n {
		b, err := c.Ping(ctx)
		if err != nil {
			t.Error(err)
			break
		}
		all = append(all, text(b))
	}
	if err := c.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
	return all
}

// pongs takes one client, and returns its pings.
func pongs(t *testing.T, l *verbs.Listener, o *Options) (all []string) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	r, err := l.Accept(ctx)
	if err != nil {
		t.Error(err)
		return nil
	}
	s, err := Accept(ctx, r, o)
	if err != nil {
		t.Error(err)
		return nil
	}
	for {
		b, err := s.Pong(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Error(err)
			break
		}
		all = append(all, text(b))
	}
	if err := s.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
	return all
}

// text is the string that a ping is, without the zero byte that ends it.
func text(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

const patience = 20 * time.Second

func serving(t *testing.T) (*verbs.Host, *verbs.Listener) {
	t.Helper()
	h, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	l, err := h.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	return h, l
}
