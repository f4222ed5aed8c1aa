package dgrdma

import (
	"encoding/binary"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/transport/udp"
)

// TestUnknownSourcesAtPortZero checks that an endpoint that takes any source for a peer takes none that says that it is at port 0: answers
// in a run to it would be refused, as if the device took no runs.
func TestUnknownSourcesAtPortZero(t *testing.T) {
	netns.Require(t)
	var wire *udp.Conn
	e, err := OpenOver("udp:127.0.0.1?profile=opencpi&accept=any", &Config{ID: 9}, func(tc Transport) Transport {
		wire = tc.(*udp.Conn)
		return tc
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	before, _ := wire.Offload()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_UDP)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	const n = 64
	for i := range n {
		b := make([]byte, 8+2+frame.HeaderSize+frame.MessageHeaderSize+8) // from port 0, without a checksum
		binary.BigEndian.PutUint16(b[2:], e.LocalAddr().AddrPort().Port())
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
		h := frame.Header{Dst: 9, Src: 5, Seq: frame.Seq(1 + 2*i), Flags: frame.FlagMessages}
		h.Put(b[10:])
		m := frame.Message{Txn: uint32(1 + i), Index: 1, Count: 1, Addr: 64, Len: 8, CompletionAddr: 128, CompletionValue: 1}
		m.Put(b[10+frame.HeaderSize:])
		if err := unix.Sendto(fd, b, 0, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); e.Stats().Transport.Foreign < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", e.Stats().Transport)
		}
	}
	if len(e.Conns()) != 0 {
		t.Errorf("it knows %v", e.Conns())
	}
	if after, _ := wire.Offload(); after != before {
		t.Errorf("offload was %v and is %v", before, after)
	}
}
