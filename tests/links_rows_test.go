package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/opencpi"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// A test for each row of sections 8.3 and 8.4 of the peers' facts, named by its
// place there. links_test.go has whole flows.

// silent plays a peer that is never heard: what we send to it is recorded.
type silent struct {
	mu   sync.Mutex
	sent []frame.Message
	data [][]byte
}

func (s *silent) frameSent(_ dgrdma.PeerName, b []byte, again bool) {
	f, err := frame.Parse(b)
	if err != nil || again {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := f.Cursor(); c.Next(); {
		s.sent = append(s.sent, c.Msg)
		s.data = append(s.data, bytes.Clone(c.Data))
	}
}

// written returns the messages with data and those that only complete.
func (s *silent) written() (data, words []frame.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.sent {
		if m.Len > 0 {
			data = append(data, m)
		} else {
			words = append(words, m)
		}
	}
	return data, words
}

// silentTest runs with a host whose peer never answers.
func silentTest(t *testing.T, profile dgrdma.Profile, run func(t *testing.T, r *portRig, s *silent)) {
	s := new(silent)
	synctest.Test(t, func(t *testing.T) {
		r := &portRig{t: t, sim: simnet.New(1)}
		defer r.sim.Close()
		var err error
		r.host, err = link.Open("", &link.Config{
			Memory: 1 << 20, Endpoint: dgrdma.Config{ID: 1, Trace: &dgrdma.Trace{FrameSent: s.frameSent}},
			Open: func(cfg *dgrdma.Config) (*dgrdma.Endpoint, error) {
				return dgrdma.New(r.sim.Attach(portOurs, simnet.Config{}), cfg)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer r.host.Close()
		if r.conn, err = r.host.Endpoint().Connect(dgrdma.Peer{ID: 2, Addr: portTheirs, Profile: &profile}); err != nil {
			t.Fatal(err)
		}
		run(t, r, s)
	})
}

// full returns a message's flag word, as the producers here send it.
func full(b []byte, opcode uint32) uint32 { return flagWord(len(b), opcode, false, false) }

// nothingComes fails if there is a message.
func nothingComes(t *testing.T, l *link.Link) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if m, err := l.In.Recv(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("received %+v, %v", m, err)
	}
}

// takes receives one message and checks it.
func takes(t *testing.T, l *link.Link, want []byte, opcode uint8) link.Message {
	t.Helper()
	m, err := l.In.Recv(context.Background())
	if err != nil || m.Opcode != opcode || !bytes.Equal(m.Bytes, want) {
		t.Fatalf("received opcode %d, %d bytes, %v; want opcode %d, %d bytes", m.Opcode, len(m.Bytes), err, opcode, len(want))
	}
	return m
}

// 8.3, first row: addresses are offsets in the endpoint's memory, buffers are
// aligned to 128, and nothing lies in the first 16 bytes.
func TestPort83Addresses(t *testing.T) {
	portTest(t, dgrdma.OpenCPI(false), func(t *testing.T, r *portRig) {
		type area struct {
			what     string
			from, to uint64
		}
		var all []area
		for i := range 3 {
			_, in := r.offer(portFlags, 4)
			_, flow := r.attach(portFlags, 80)
			all = append(all,
				area{fmt.Sprint("buffers ", i), uint64(in.DataAddr), uint64(in.DataAddr) + portBuffers*uint64(in.Pitch)},
				area{fmt.Sprint("full flags ", i), uint64(in.FullFlagAddr), uint64(in.FullFlagAddr) + portBuffers*80},
				area{fmt.Sprint("empty flags ", i), uint64(flow.EmptyFlagAddr), uint64(flow.EmptyFlagAddr) + portBuffers*4})
			if in.DataAddr%128 != 0 || in.Pitch < in.Size {
				t.Errorf("buffers at %#x, every %d for %d bytes", in.DataAddr, in.Pitch, in.Size)
			}
		}
		for i, a := range all {
			if a.from < 16 || a.to > 1<<20 {
				t.Errorf("%s at %#x to %#x", a.what, a.from, a.to)
			}
			for _, b := range all[:i] {
				if a.from < b.to && b.from < a.to {
					t.Errorf("%s and %s overlap", a.what, b.what)
				}
			}
		}
	})
}

// 8.3, consumer: buffer i is at base + i x pitch and its flag at base + i x 80, of
// which word 0 counts; bit 0 alone decides between full and empty.
func TestPort83ConsumerFlags(t *testing.T) {
	portTest(t, dgrdma.OpenCPI(false), func(t *testing.T, r *portRig) {
		d := peers.NewDG1(r.wire(), portOurs, peers.DG1Config{})
		defer d.Close()
		l, to := r.offer(portFlags, 4)
		b := message(7, portSize)
		part := peers.Part{Addr: to.DataAddr, Data: append(bytes.Clone(b), make([]byte, portSize-len(b))...)}
		d.Post(to.FullFlagAddr, full(b, 9)&^1, part) // empty, whatever the other bits
		nothingComes(t, l)
		for word := uint32(1); word < 20; word++ {
			d.Post(to.FullFlagAddr+word*4, full(b, 9)) // of other ports, or of nobody
		}
		nothingComes(t, l)
		for i := range uint32(portBuffers) {
			part.Addr = to.DataAddr + i*to.Pitch
			d.Post(to.FullFlagAddr+i*80, full(b, 9+i), part)
		}
		for i := range portBuffers {
			takes(t, l, b, uint8(9+i))
		}
		time.Sleep(time.Second)
		r.sound(&d.Port)
	})
}

// 8.3, producer: empty flag i is at base + i x 4, all buffers are empty at first,
// and what sets the flag is a word with bit 0.
func TestPort83ProducerFlags(t *testing.T) {
	portTest(t, dgrdma.OpenCPI(false), func(t *testing.T, r *portRig) {
		d := peers.NewDG1(r.wire(), portOurs, peers.DG1Config{})
		defer d.Close()
		l, flow := r.attach(portFlags, 80)
		if flow.EmptyFlagPitch != 4 || flow.EmptyFlagAddr%4 != 0 {
			t.Errorf("empty flags at %#x, every %d", flow.EmptyFlagAddr, flow.EmptyFlagPitch)
		}
		sent := 0
		fill := func() {
			for b, ok := l.Out.TryAcquire(); ok; b, ok = l.Out.TryAcquire() {
				if err := l.Out.Commit(b, 0, 4); err != nil {
					t.Fatal(err)
				}
				sent++
			}
		}
		fill()
		time.Sleep(time.Second)
		fill()
		if sent != portBuffers {
			t.Errorf("%d messages before any buffer came back, want %d", sent, portBuffers)
		}
		d.Post(flow.EmptyFlagAddr, 0) // still full
		d.Post(flow.EmptyFlagAddr-4, 1)
		d.Post(flow.EmptyFlagAddr+4*portBuffers, 1) // no flags
		time.Sleep(time.Second)
		if fill(); sent != portBuffers {
			t.Errorf("%d messages, but none of these words frees a buffer", sent)
		}
		d.Post(flow.EmptyFlagAddr, 1)
		time.Sleep(time.Second)
		if fill(); sent != portBuffers+1 {
			t.Errorf("%d messages, want one more than %d", sent, portBuffers)
		}
	})
}

// 8.3, both sides: buffers are used strictly in turn. A flag or a credit that is
// early waits for those before it.
func TestPort83RoundRobin(t *testing.T) {
	portTest(t, dgrdma.OpenCPI2(), func(t *testing.T, r *portRig) {
		d := peers.NewDG2(r.wire(), portOurs, peers.DG2Config{})
		defer d.Close()
		l, to := r.offer(portFlags, 4)
		for _, i := range []uint32{1, 3, 2} {
			d.Post(to.FullFlagAddr+i*80, full(message(int(i), portSize), i), to.DataAddr+i*to.Pitch, message(int(i), portSize))
			d.Flush()
		}
		nothingComes(t, l)
		d.Post(to.FullFlagAddr, full(message(5, portSize), 0), to.DataAddr, message(5, portSize))
		d.Flush()
		takes(t, l, message(5, portSize), 0)
		for i := 1; i < portBuffers; i++ {
			takes(t, l, message(i, portSize), uint8(i))
		}
	})
	portTest(t, dgrdma.OpenCPI(false), func(t *testing.T, r *portRig) {
		d := peers.NewDG1(r.wire(), portOurs, peers.DG1Config{})
		defer d.Close()
		l, flow := r.attach(portFlags, 80)
		for range portBuffers {
			if err := l.Out.Send(context.Background(), 0, []byte{1}); err != nil {
				t.Fatal(err)
			}
		}
		d.Post(flow.EmptyFlagAddr+2*4, 1)
		time.Sleep(time.Second)
		if _, ok := l.Out.TryAcquire(); ok {
			t.Error("buffer 0 was reused when buffer 2 came back")
		}
		d.Post(flow.EmptyFlagAddr, 1)
		time.Sleep(time.Second)
		if _, ok := l.Out.TryAcquire(); !ok {
			t.Error("buffer 0 came back and is not used")
		}
		if _, ok := l.Out.TryAcquire(); ok {
			t.Error("buffer 1 was reused, which did not come back")
		}
	})
}

// 8.3, a producer's transaction: whole buffers from the first driver, as many
// bytes as the flag says from the second. The flag's length counts. Ours are the
// message's bytes at buffer i, completed by the packed flag at full flag i.
func TestPort83Transactions(t *testing.T) {
	portTest(t, dgrdma.OpenCPI(false), func(t *testing.T, r *portRig) {
		d := peers.NewDG1(r.wire(), portOurs, peers.DG1Config{})
		defer d.Close()
		l, to := r.offer(portFlags, 4)
		b := bytes.Repeat([]byte{7}, portSize)
		d.Post(to.FullFlagAddr, flagWord(33, 1, false, false), peers.Part{Addr: to.DataAddr, Data: b})
		takes(t, l, b[:33], 1)
	})
	silentTest(t, dgrdma.OpenCPI(false), func(t *testing.T, r *portRig, s *silent) {
		l, _ := r.attach(portFlags, 80)
		for k := 1; k <= 3; k++ {
			if err := l.Out.Send(context.Background(), uint8(k), message(k, 1000)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Millisecond)
		data, words := s.written()
		if len(data) != 3 || len(words) != 0 {
			t.Fatalf("%d messages with data, %d words", len(data), len(words))
		}
		for i, m := range data {
			want := message(i+1, 1000)
			if m.Addr != portData+uint32(i)*portSize || int(m.Len) != len(want) || m.CompletionAddr != portFlags+uint32(i)*80 || m.CompletionValue != full(want, uint32(i+1)) {
				t.Errorf("message %d: %+v", i, m)
			}
		}
	})
}

// 8.3, the consumer's doorbell: a transaction with nothing but the completion, the
// value 1 at empty flag i.
func TestPort83Doorbell(t *testing.T) {
	portTest(t, dgrdma.OpenCPI(false), func(t *testing.T, r *portRig) {
		d := peers.NewDG1(r.wire(), portOurs, peers.DG1Config{})
		defer d.Close()
		l, to := r.offer(portFlags, 4)
		for k := range 2 * portBuffers {
			i := uint32(k % portBuffers)
			b := message(k+1, portSize)
			d.Post(to.FullFlagAddr+i*80, full(b, 0), peers.Part{Addr: to.DataAddr + i*to.Pitch, Data: append(b, make([]byte, portSize-len(b))...)})
			if err := l.In.Release(takes(t, l, b, 0)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			words := flagsAt(&d.Port, portFlags, 4*portBuffers)
			if len(words) != k+1 || words[k].Addr != portFlags+4*i || words[k].Value != 1 {
				t.Fatalf("after message %d: %+v", k, words)
			}
		}
		if n := d.Counters().Messages; n != 2*portBuffers {
			t.Errorf("%d messages for %d doorbells", n, 2*portBuffers)
		}
		r.sound(&d.Port)
	})
}

// 8.4, a card's addresses: data in the window of its DMA engine, flags in the
// control plane at the top of 2^32, all buffers at one address (pitch 0).
func TestPort84Addresses(t *testing.T) {
	const data, doorbell = 1 << 26, 0xFC000000 + 0x100000 + 3*0x100000 + 0x5C
	card := dgrdma.FPGA()
	card.Cumulative = false // else the second frame waits for an answer to the first
	silentTest(t, card, func(t *testing.T, r *portRig, s *silent) {
		l, _, err := opencpi.Attach(r.host, r.conn, opencpi.Descriptor{
			Kind: opencpi.KindConsumer, Role: opencpi.RoleActiveFlowControl, Options: opencpi.OptionFlagIsMeta,
			Buffers: portBuffers, DataAddr: data, Pitch: portSize, Size: portSize,
			FullFlagAddr: doorbell, FullFlagSize: 4, FullFlagPitch: 0, FullFlagValue: 1,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k := range portBuffers {
			if err := l.Out.Send(context.Background(), 0, message(k+1, 400)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Millisecond)
		got, _ := s.written()
		if len(got) != portBuffers {
			t.Fatalf("%d messages", len(got))
		}
		for i, m := range got {
			if m.Addr != data+uint32(i)*portSize || m.CompletionAddr != doorbell {
				t.Errorf("message %d at %#x, completed at %#x", i, m.Addr, m.CompletionAddr)
			}
		}
	})
}

// 8.4, host to card: doorbells ring in the order of the messages, because the card
// takes its buffers in turn, and credits come as 4 bytes of data.
func TestPort84Credits(t *testing.T) {
	portTest(t, dgrdma.FPGA(), func(t *testing.T, r *portRig) {
		d := peers.NewFPGA(r.wire(), portOurs, peers.FPGAConfig{})
		defer d.Close()
		l, flow := r.attach(portDoorbell, 0)
		send := func(from, to int) {
			for k := from; k < to; k++ {
				if err := l.Out.Send(context.Background(), uint8(k), message(k, portSize)); err != nil {
					t.Fatal(err)
				}
			}
		}
		send(0, portBuffers)
		if _, ok := l.Out.TryAcquire(); ok {
			t.Error("a fifth buffer of four")
		}
		d.Doorbell(flow.EmptyFlagAddr, 1)
		d.Doorbell(flow.EmptyFlagAddr+4, 1)
		send(portBuffers, portBuffers+2)
		time.Sleep(time.Second)
		if _, ok := l.Out.TryAcquire(); ok {
			t.Error("a third buffer came back of two")
		}
		rung := flagsAt(&d.Port, portDoorbell, 4)
		if len(rung) != portBuffers+2 {
			t.Fatalf("the doorbell rang %d times", len(rung))
		}
		for k, w := range rung {
			if w.Value != full(message(k, portSize), uint32(k)) {
				t.Errorf("ring %d is %#x", k, w.Value)
			}
		}
		r.sound(&d.Port)
	})
}

// 8.4: the card never gives the buffer with end of file back. Close does not wait
// for that, nor for the others.
func TestPort84EndOfFileIsSticky(t *testing.T) {
	portTest(t, dgrdma.FPGA(), func(t *testing.T, r *portRig) {
		d := peers.NewFPGA(r.wire(), portOurs, peers.FPGAConfig{})
		defer d.Close()
		l, _ := r.attach(portDoorbell, 0)
		if err := l.Out.Send(context.Background(), 3, []byte("last words.")); err != nil {
			t.Fatal(err)
		}
		if err := l.Out.Close(); err != nil {
			t.Error(err)
		}
		rung := flagsAt(&d.Port, portDoorbell, 4)
		if len(rung) != 2 || rung[1].Value != flagWord(0, 0, true, false) {
			t.Errorf("%+v", rung)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// 8.4, card to host: data in whole words, of which the flag says how many bytes
// count, completed at host flag i.
func TestPort84Lengths(t *testing.T) {
	portTest(t, dgrdma.FPGA(), func(t *testing.T, r *portRig) {
		d := peers.NewFPGA(r.wire(), portOurs, peers.FPGAConfig{})
		defer d.Close()
		l, to := r.offer(portDoorbell, 0)
		for n := 1; n <= 12; n++ {
			i := uint32(n-1) % portBuffers
			b := bytes.Repeat([]byte{byte(n)}, n)
			d.Write(to.DataAddr+i*to.Pitch, b, to.FullFlagAddr+i*80, full(b, uint32(n)))
			if err := l.In.Release(takes(t, l, b, uint8(n))); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// 8.4: a message without bytes, and end of file, are a word of data at the flag,
// without completion.
func TestPort84WordsOfData(t *testing.T) {
	portTest(t, dgrdma.FPGA(), func(t *testing.T, r *portRig) {
		d := peers.NewFPGA(r.wire(), portOurs, peers.FPGAConfig{})
		defer d.Close()
		l, to := r.offer(portDoorbell, 0)
		d.Doorbell(to.FullFlagAddr, flagWord(0, 42, false, false))
		takes(t, l, nil, 42)
		d.Doorbell(to.FullFlagAddr+80, flagWord(0, 0, true, false))
		if m, err := l.In.Recv(context.Background()); err != io.EOF {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

// 8.4: of a message that is longer than the card can send, the first part comes,
// with the whole length in the flag and the bit that says so.
func TestPort84CutMessages(t *testing.T) {
	portTest(t, dgrdma.FPGA(), func(t *testing.T, r *portRig) {
		d := peers.NewFPGA(r.wire(), portOurs, peers.FPGAConfig{})
		defer d.Close()
		l, to := r.offer(portDoorbell, 0)
		b := bytes.Repeat([]byte{9}, portSize)
		d.Write(to.DataAddr, b, to.FullFlagAddr, flagWord(3*portSize, 1, false, true))
		if m := takes(t, l, b, 1); !m.Truncated || m.EOF {
			t.Errorf("%+v", m)
		}
		// Without the bit the length is a lie that nobody can read past.
		d.Write(to.DataAddr+to.Pitch, b, to.FullFlagAddr+80, flagWord(portSize+1, 1, false, false))
		if _, err := l.In.Recv(context.Background()); !errors.Is(err, link.ErrProtocol) {
			t.Error(err)
		}
	})
}

// 8.4, to a card that produces: one doorbell, and each ring with the value 1 is one
// buffer, in a transaction of its own without data.
func TestPort84SenderDoorbell(t *testing.T) {
	portTest(t, dgrdma.FPGA(), func(t *testing.T, r *portRig) {
		d := peers.NewFPGA(r.wire(), portOurs, peers.FPGAConfig{})
		defer d.Close()
		l, to := r.offer(portDoorbell, 0)
		for k := range 3 * portBuffers {
			i, b := uint32(k%portBuffers), message(k+1, portSize)
			r.free(&d.Port, k, portDoorbell, 0)
			d.Write(to.DataAddr+i*to.Pitch, b, to.FullFlagAddr+i*80, full(b, 0))
			if err := l.In.Release(takes(t, l, b, 0)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		rung := flagsAt(&d.Port, portDoorbell, 4)
		for _, w := range rung {
			if w.Value != 1 {
				t.Errorf("rung with %d", w.Value)
			}
		}
		if len(rung) != 3*portBuffers || d.Counters().Messages != len(rung) {
			t.Errorf("%d rings in %d messages, for %d buffers", len(rung), d.Counters().Messages, 3*portBuffers)
		}
		r.sound(&d.Port)
	})
}

// 8.4, limits: a card has at most 255 remote buffers of ours.
func TestPort84Limits(t *testing.T) {
	portTest(t, dgrdma.FPGA(), func(t *testing.T, r *portRig) {
		d := peers.NewFPGA(r.wire(), portOurs, peers.FPGAConfig{})
		defer d.Close()
		const buffers = 255
		l, to, err := opencpi.Offer(r.host, r.conn, &link.Options{Buffers: buffers, Size: 256})
		if err != nil {
			t.Fatal(err)
		}
		if err := opencpi.Connect(l, opencpi.Descriptor{
			Kind: opencpi.KindConsumerFlowControl, Role: opencpi.RoleActiveMessage, Buffers: buffers, Size: 256,
			EmptyFlagAddr: portDoorbell, EmptyFlagSize: 4, EmptyFlagPitch: 0, EmptyFlagValue: 1,
		}); err != nil {
			t.Fatal(err)
		}
		for i := range uint32(buffers) {
			b := message(int(i)+1, 256)
			d.Write(to.DataAddr+i*to.Pitch, b, to.FullFlagAddr+i*80, full(b, i&0x7F))
		}
		for i := range buffers {
			if err := l.In.Release(takes(t, l, message(i+1, 256), uint8(i&0x7F))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if n := len(flagsAt(&d.Port, portDoorbell, 4)); n != buffers {
			t.Errorf("%d buffers came back", n)
		}
		r.sound(&d.Port)
	})
}
