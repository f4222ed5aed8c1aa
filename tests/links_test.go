package tests

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/opencpi"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// The upper layer of peers of other kinds, on top of their doubles, after sections
// 8.3 and 8.4 of the peers' facts.

// portRig is a host and a double.
type portRig struct {
	t    *testing.T
	sim  *simnet.Network
	host *link.Host
	conn *dgrdma.Conn
}

var portOurs, portTheirs = simnet.Addr(1), simnet.Addr(2)

func portTest(t *testing.T, profile dgrdma.Profile, run func(t *testing.T, r *portRig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &portRig{t: t, sim: simnet.New(1)}
		defer r.sim.Close()
		var err error
		r.host, err = link.Open("", &link.Config{Memory: 1 << 20, Endpoint: dgrdma.Config{ID: 1},
			Open: func(cfg *dgrdma.Config) (*dgrdma.Endpoint, error) {
				return dgrdma.New(r.sim.Attach(portOurs, simnet.Config{}), cfg)
			}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.host.Close()
		r.conn, err = r.host.Endpoint().Connect(dgrdma.Peer{ID: 2, Addr: portTheirs, Profile: &profile})
		if err != nil {
			t.Fatal(err)
		}
		run(t, r)
	})
}

func (r *portRig) wire() transport.Conn { return r.sim.Attach(portTheirs, simnet.Config{Headroom: 2}) }

// sound reports what the original would not have survived.
func (r *portRig) sound(d *peers.Port) {
	r.t.Helper()
	for _, v := range d.Violations() {
		r.t.Error(v)
	}
}

// flagWord is the flag word of section 8.2, built here by hand.
func flagWord(length int, opcode uint32, eof, truncated bool) uint32 {
	w := 1 | uint32(length)<<1 | opcode<<24
	if eof {
		w |= 1 << 22
	}
	if truncated {
		w |= 1 << 23
	}
	return w
}

// message is what number k of a flow holds.
func message(k, most int) []byte {
	b := make([]byte, (k*377)%(most+1))
	for i := range b {
		b[i] = byte(k + i)
	}
	return b
}

const (
	portBuffers  = 4
	portSize     = 2048
	portMessages = 50
	portData     = 0x10000 // where a double has its buffers
	portFlags    = 0x8000  // and its flags
	portDoorbell = 0xF005C // remote_doorbell of a card's worker; in the double's memory all is low
)

// flagsAt returns the completion words that were written in a range, so far.
func flagsAt(d *peers.Port, from, n uint32) (words []peers.Completion) {
	for _, c := range d.Completions() {
		if c.Addr >= from && c.Addr < from+n {
			words = append(words, c)
		}
	}
	return words
}

// consumed plays a consumer: it takes buffers in turn as their flags come, checks
// what is in them, and gives them back with give, after a while.
func (r *portRig) consumed(d *peers.Port, pitch uint32, give func(i uint32)) (messages int) {
	for {
		time.Sleep(300 * time.Microsecond)
		// The one doorbell rings for every message, a buffer's flag once a round:
		// with a flag for each buffer they may come out of turn.
		i := uint32(messages % portBuffers)
		at, nth := portFlags+i*pitch, messages/portBuffers
		if pitch == 0 {
			at, nth = portDoorbell, messages
		}
		words := flagsAt(d, at, 4)
		if len(words) <= nth {
			continue
		}
		w := words[nth]
		if messages == portMessages {
			if w.Value != flagWord(0, 0, true, false) {
				r.t.Errorf("end of file is %#x", w.Value)
			}
			return messages // sticky: that buffer is never returned
		}
		want := message(messages, portSize)
		if w.Value != flagWord(len(want), uint32(messages%256), false, false) {
			r.t.Errorf("message %d: flag %#x", messages, w.Value)
		}
		if got := d.Bytes(int(portData+i*portSize), len(want)); !bytes.Equal(got, want) {
			r.t.Errorf("message %d of %d bytes differs", messages, len(want))
		}
		messages++
		give(i)
	}
}

// produce sends all messages and end of file.
func (r *portRig) produce(l *link.Link) {
	for k := range portMessages {
		if err := l.Out.Send(context.Background(), uint8(k), message(k, portSize)); err != nil {
			r.t.Errorf("message %d: %v", k, err)
			return
		}
	}
	if err := l.Out.Close(); err != nil {
		r.t.Errorf("close: %v", err)
	}
}

// attach makes a link to a double that consumes.
func (r *portRig) attach(flags, pitch uint32) (*link.Link, opencpi.Descriptor) {
	r.t.Helper()
	l, d, err := opencpi.Attach(r.host, r.conn, opencpi.Descriptor{
		Kind: opencpi.KindConsumer, Role: opencpi.RoleActiveFlowControl, Options: opencpi.OptionFlagIsMeta,
		Buffers: portBuffers, DataAddr: portData, Pitch: portSize, Size: portSize,
		FullFlagAddr: flags, FullFlagSize: 4, FullFlagPitch: pitch, FullFlagValue: 1,
	}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if d.Kind != opencpi.KindConsumerFlowControl || d.EmptyFlagSize != 4 || d.EmptyFlagPitch != 4 || d.EmptyFlagValue != 1 {
		r.t.Errorf("the flow-control descriptor is %+v", d)
	}
	return l, d
}

// Section 8.4, host to card: one doorbell for all buffers, in the order of the
// messages; buffers come back as words of data, and the one with end of file never.
func TestPortHostToCard(t *testing.T) {
	portTest(t, dgrdma.FPGA(), func(t *testing.T, r *portRig) {
		d := peers.NewFPGA(r.wire(), portOurs, peers.FPGAConfig{})
		defer d.Close()
		l, flow := r.attach(portDoorbell, 0)
		go r.produce(l)
		got := r.consumed(&d.Port, 0, func(i uint32) { d.Doorbell(flow.EmptyFlagAddr+i*4, 1) })
		if got != portMessages {
			t.Errorf("%d messages", got)
		}
		time.Sleep(time.Second)
		r.sound(&d.Port)
	})
}

// Section 8.3, host to C++ consumers: a flag for each buffer, and the word 1 for
// each that is free.
func TestPortHostToSoftware(t *testing.T) {
	const pitch = 80
	t.Run("first", func(t *testing.T) {
		portTest(t, dgrdma.OpenCPI(false), func(t *testing.T, r *portRig) {
			d := peers.NewDG1(r.wire(), portOurs, peers.DG1Config{})
			defer d.Close()
			l, flow := r.attach(portFlags, pitch)
			go r.produce(l)
			r.consumed(&d.Port, pitch, func(i uint32) { d.Post(flow.EmptyFlagAddr+i*4, 1) })
			time.Sleep(time.Second)
			r.sound(&d.Port)
		})
	})
	t.Run("second", func(t *testing.T) {
		portTest(t, dgrdma.OpenCPI2(), func(t *testing.T, r *portRig) {
			d := peers.NewDG2(r.wire(), portOurs, peers.DG2Config{})
			defer d.Close()
			l, flow := r.attach(portFlags, pitch)
			go r.produce(l)
			r.consumed(&d.Port, pitch, func(i uint32) {
				d.Post(flow.EmptyFlagAddr+i*4, 1, 0, nil)
				d.Flush()
			})
			time.Sleep(time.Second)
			r.sound(&d.Port)
		})
	})
}

// offer makes a link that a double produces into.
func (r *portRig) offer(empty, pitch uint32) (*link.Link, opencpi.Descriptor) {
	r.t.Helper()
	l, d, err := opencpi.Offer(r.host, r.conn, &link.Options{Buffers: portBuffers, Size: portSize})
	if err != nil {
		r.t.Fatal(err)
	}
	if d.Kind != opencpi.KindConsumer || d.Buffers != portBuffers || d.Size != portSize || d.FullFlagPitch != 80 || d.DataAddr%128 != 0 {
		r.t.Errorf("the consumer's descriptor is %+v", d)
	}
	if err := d.Validate(); err != nil {
		r.t.Error(err)
	}
	err = opencpi.Connect(l, opencpi.Descriptor{
		Kind: opencpi.KindConsumerFlowControl, Role: opencpi.RoleActiveMessage, Buffers: portBuffers, Size: portSize,
		EmptyFlagAddr: empty, EmptyFlagSize: 4, EmptyFlagPitch: pitch, EmptyFlagValue: 1,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return l, d
}

// received takes all messages, keeping some for a while.
func (r *portRig) received(l *link.Link, done chan<- bool) {
	defer close(done)
	k := 0
	for m, err := range l.In.Messages(context.Background()) {
		if err != nil {
			r.t.Error(err)
			return
		}
		if want := message(k, portSize); m.Opcode != uint8(k) || !bytes.Equal(m.Bytes, want) {
			r.t.Errorf("message %d: opcode %d, %d bytes, want %d", k, m.Opcode, len(m.Bytes), len(want))
		}
		if k++; k%7 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if k != portMessages {
		r.t.Errorf("%d messages", k)
	}
}

// free waits until a producer may use the buffer of message k: all words that say
// so, of one address or of one for each buffer, have the value 1.
func (r *portRig) free(d *peers.Port, k int, empty, pitch uint32) {
	for k >= portBuffers {
		n := 0
		for _, w := range flagsAt(d, empty, max(portBuffers*pitch, 4)) {
			if w.Value != 1 {
				r.t.Errorf("a buffer came back with %d", w.Value)
			}
			if pitch == 0 || w.Addr == empty+uint32(k%portBuffers)*pitch {
				n++
			}
		}
		if pitch == 0 && n > k-portBuffers || pitch != 0 && n >= k/portBuffers {
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// Section 8.4, card to host: lengths in whole words, a message without bytes and
// end of file as words of data at the flag, buffers given back at one doorbell.
func TestPortCardToHost(t *testing.T) {
	portTest(t, dgrdma.FPGA(), func(t *testing.T, r *portRig) {
		d := peers.NewFPGA(r.wire(), portOurs, peers.FPGAConfig{})
		defer d.Close()
		l, to := r.offer(portDoorbell, 0)
		done := make(chan bool)
		go r.received(l, done)
		for k := range portMessages {
			r.free(&d.Port, k, portDoorbell, 0)
			b, i := message(k, portSize), uint32(k%portBuffers)
			flag := flagWord(len(b), uint32(k), false, false)
			if len(b) == 0 {
				d.Doorbell(to.FullFlagAddr+i*to.FullFlagPitch, flag)
				continue
			}
			d.Write(to.DataAddr+i*to.Pitch, b, to.FullFlagAddr+i*to.FullFlagPitch, flag)
		}
		r.free(&d.Port, portMessages, portDoorbell, 0)
		d.Doorbell(to.FullFlagAddr+portMessages%portBuffers*to.FullFlagPitch, flagWord(0, 0, true, false))
		<-done
		time.Sleep(time.Second)
		r.sound(&d.Port)
	})
}

// Section 8.2: a card that had more than fits says so.
func TestPortTruncated(t *testing.T) {
	portTest(t, dgrdma.FPGA(), func(t *testing.T, r *portRig) {
		d := peers.NewFPGA(r.wire(), portOurs, peers.FPGAConfig{})
		defer d.Close()
		l, to := r.offer(portDoorbell, 0)
		d.Write(to.DataAddr, message(100, portSize), to.FullFlagAddr, flagWord(portSize+100, 3, true, true))
		m, err := l.In.Recv(context.Background())
		if err != nil || !m.Truncated || !m.EOF || m.Opcode != 3 || len(m.Bytes) != portSize {
			t.Errorf("%+v, %v", m, err)
		}
		if err := l.In.Release(m); err != nil {
			t.Error(err)
		}
		if _, err := l.In.Recv(context.Background()); err != io.EOF {
			t.Error(err)
		}
	})
}

// Section 8.3, C++ producers to host: whole buffers whatever the length, several
// messages or one with count 0, and a word for each buffer given back.
func TestPortSoftwareToHost(t *testing.T) {
	const empty, pitch = portFlags, 4
	whole := func(b []byte) []byte { return append(bytes.Clone(b), make([]byte, portSize-len(b))...) }
	t.Run("first", func(t *testing.T) {
		portTest(t, dgrdma.OpenCPI(false), func(t *testing.T, r *portRig) {
			d := peers.NewDG1(r.wire(), portOurs, peers.DG1Config{})
			defer d.Close()
			l, to := r.offer(empty, pitch)
			done := make(chan bool)
			go r.received(l, done)
			for k := range portMessages {
				r.free(&d.Port, k, empty, pitch)
				b, i := message(k, portSize), uint32(k%portBuffers)
				part := peers.Part{Addr: to.DataAddr + i*to.Pitch, Data: whole(b)}
				if k%2 == 0 && len(b) > 4 {
					part.Data = part.Data[:min(len(b), 1000)] // as one message, which says count 0 (D1-1)
					if len(b) > 1000 {
						part.Data = whole(b)
					}
				}
				d.Post(to.FullFlagAddr+i*to.FullFlagPitch, flagWord(len(b), uint32(k), false, false), part)
			}
			r.free(&d.Port, portMessages, empty, pitch)
			d.Post(to.FullFlagAddr+portMessages%portBuffers*to.FullFlagPitch, flagWord(0, 0, true, false))
			<-done
			time.Sleep(time.Second)
			r.sound(&d.Port)
		})
	})
	t.Run("second", func(t *testing.T) {
		portTest(t, dgrdma.OpenCPI2(), func(t *testing.T, r *portRig) {
			d := peers.NewDG2(r.wire(), portOurs, peers.DG2Config{})
			defer d.Close()
			l, to := r.offer(empty, pitch)
			done := make(chan bool)
			go r.received(l, done)
			for k := range portMessages {
				r.free(&d.Port, k, empty, pitch)
				b, i := message(k, portSize), uint32(k%portBuffers)
				d.Post(to.FullFlagAddr+i*to.FullFlagPitch, flagWord(len(b), uint32(k), false, false), to.DataAddr+i*to.Pitch, b)
				d.Flush()
			}
			r.free(&d.Port, portMessages, empty, pitch)
			d.Post(to.FullFlagAddr+portMessages%portBuffers*to.FullFlagPitch, flagWord(0, 0, true, false), 0, nil)
			d.Flush()
			<-done
			time.Sleep(time.Second)
			r.sound(&d.Port)
		})
	})
}

// TestDescriptorsTravel: what Offer and Attach return survives both forms.
func TestDescriptorsTravel(t *testing.T) {
	portTest(t, dgrdma.FPGA(), func(t *testing.T, r *portRig) {
		_, in := r.offer(portDoorbell, 0)
		_, flow := r.attach(portDoorbell, 0)
		for _, d := range []opencpi.Descriptor{in, flow} {
			b, err := d.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := opencpi.ParseDescriptor(b); err != nil || got != d {
				t.Errorf("%+v, %v", got, err)
			}
			if binary.LittleEndian.Uint32(b[4:]) != uint32(d.Kind) {
				t.Errorf("kind at byte 4 is %d", b[4])
			}
		}
	})
}
