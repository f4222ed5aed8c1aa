package wireshark_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// recorder makes a capture of frames laid out by hand, between the two ends of
// a wire, which delivers nothing.
type recorder struct {
	t     testing.TB
	addrs [2]transport.Addr
	conns [2]transport.Conn
	file  bytes.Buffer
}

func newRecorder(t testing.TB, wire string, o tap.Options) *recorder {
	t.Helper()
	r := &recorder{t: t, addrs: wires[wire]}
	network := simnet.New(1)
	t.Cleanup(func() { network.Close() })
	for i, at := range r.addrs {
		network.Link(at, r.addrs[1-i], simnet.Link{Down: true})
		var w io.Writer = &r.file
		if i == 1 {
			w = &afterFirst{w: w} // one file header is enough
		}
		var err error
		if r.conns[i], err = tap.New(network.Attach(at, simnet.Config{MTU: 1 << 17}), w, o); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// afterFirst leaves the first Write out.
type afterFirst struct {
	w     io.Writer
	begun bool
}

func (a *afterFirst) Write(b []byte) (int, error) {
	if !a.begun {
		a.begun = true
		return len(b), nil
	}
	return a.w.Write(b)
}

// send records frames from one end, 0 or 1, to the other.
func (r *recorder) send(from int, frames ...[]byte) {
	r.t.Helper()
	c := r.conns[from]
	for _, f := range frames {
		buf := append(make([]byte, c.Caps().Headroom), f...)
		if _, err := c.Send([]transport.Outgoing{{To: &r.addrs[1-from], Buf: buf}}); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *recorder) save() string { return save(r.t, r.file.Bytes()) }

// made lays out a frame; the data of its messages is a pattern.
func made(h frame.Header, msgs ...frame.Message) []byte {
	b := make([]byte, frame.HeaderSize, 1<<17)
	if len(msgs) > 0 {
		var w frame.Writer
		b = b[:cap(b)]
		w.Init(b)
		for i := range msgs {
			data := w.Add(&msgs[i])
			for j := range data {
				data[j] = byte(7*j + i + 1)
			}
		}
		b = b[:w.Len()]
		h.Flags |= frame.FlagMessages
	}
	h.Put(b)
	return b
}

// from1 is the header of a frame from endpoint 1 to endpoint 2, from2 of one
// back, with an acknowledgement.
func from1(seq int) frame.Header { return frame.Header{Dst: 2, Src: 1, Seq: frame.Seq(seq)} }

func from2(seq, ack, count int) frame.Header {
	return frame.Header{Dst: 1, Src: 2, Seq: frame.Seq(seq), AckStart: frame.Seq(ack), AckCount: uint8(count)}
}

// data is message i of n of a transaction.
func data(txn, i, n, length int) frame.Message {
	return frame.Message{
		Txn: uint32(txn), CompletionAddr: 64, CompletionValue: 1, Count: uint16(n), Index: uint16(i),
		Addr: uint32(4096 + i*length), Len: uint16(length),
	}
}

// record is a packet of a capture file.
type record struct {
	data   []byte
	length int // on the wire
}

// records takes a little-endian capture file apart.
func records(t testing.TB, file []byte) (all []record) {
	t.Helper()
	le := binary.LittleEndian
	for b := file[24:]; len(b) > 0; {
		kept := int(le.Uint32(b[8:]))
		all = append(all, record{bytes.Clone(b[16 : 16+kept]), int(le.Uint32(b[12:]))})
		b = b[16+kept:]
	}
	if len(all) == 0 {
		t.Fatal("an empty capture")
	}
	return all
}

// elsewhere returns records of Ethernet as between other stations: those of several captures can be in one file
// then, as tshark takes long to start, and have nothing to do with each other.
func elsewhere(place int, all []record) []record {
	for _, r := range all {
		r.data[3], r.data[9] = byte(place), byte(place)
	}
	return all
}

// pcapOf makes a capture file, one record a millisecond.
func pcapOf(linkType uint32, all []record) []byte {
	le := binary.LittleEndian
	b := []byte{0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0}
	b = le.AppendUint32(b, linkType)
	for i, r := range all {
		for _, n := range []int{1_700_000_000 + i/1000, i % 1000 * 1_000_000, len(r.data), r.length} {
			b = le.AppendUint32(b, uint32(n))
		}
		b = append(b, r.data...)
	}
	return b
}
