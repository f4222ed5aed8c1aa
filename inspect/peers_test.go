package inspect_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect"
)

// trace is a pcap file on Ethernet that a test makes up.
type trace struct {
	b    []byte
	at   time.Duration
	snap int // 0: whole packets
}

func newTrace() *trace {
	b := binary.LittleEndian.AppendUint32(nil, 0xA1B23C4D) // nanoseconds
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, 65535)
	return &trace{b: binary.LittleEndian.AppendUint32(b, 1)}
}

// put records a frame some time after the one before it.
func (c *trace) put(after time.Duration, from, to byte, f []byte) {
	c.at += after
	packet := append([]byte{2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0xF0, 0x42}, f...)
	kept := packet
	if c.snap > 0 {
		kept = packet[:min(c.snap, len(packet))]
	}
	c.b = binary.LittleEndian.AppendUint32(c.b, 1_700_000_000+uint32(c.at/time.Second))
	c.b = binary.LittleEndian.AppendUint32(c.b, uint32(c.at%time.Second))
	c.b = binary.LittleEndian.AppendUint32(c.b, uint32(len(kept)))
	c.b = append(binary.LittleEndian.AppendUint32(c.b, uint32(len(packet))), kept...)
}

// acks has endpoint 2 acknowledge, under an id of its own.
func (c *trace) acks(after time.Duration, id, start frame.Seq, n uint8) {
	b := frameWith(2, 1, id)
	frame.PutAck(b, start, n)
	c.put(after, 2, 1, b)
}

func (c *trace) report(t *testing.T) *inspect.Report {
	t.Helper()
	r, err := captured.NewFileReader(bytes.NewReader(c.b), captured.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return analyze(t, r)
}

// request is what OpenCPI's first C++ driver sends for a buffer: one message of
// data, and the completion word.
func request(txn, buffer, word uint32) frame.Message {
	return frame.Message{Txn: txn, CompletionAddr: 0x200 + 80*buffer, CompletionValue: word, Count: 1, Index: 1, Addr: 0x10000 + 256*buffer, Len: 200}
}

// OpenCPI's first C++ driver sends frames again that are younger than the clock
// it read: a copy comes at once, and is what the network would have doubled.
// Observation V8 (docs/peers.md).
func TestCopiesAtOnceHaveTwoCauses(t *testing.T) {
	tell := func(ours bool, apart time.Duration) *inspect.Report {
		c := newTrace()
		if ours {
			b := frameWith(1, 2, 0, frame.Message{Txn: 77, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion})
			frame.PutAck(b, 1, 0)
			c.put(0, 1, 2, b)
		}
		for i := range uint32(40) {
			f := frameWith(1, 2, frame.Seq(1+i), request(1+i, i%8, 401))
			c.put(30*time.Microsecond, 1, 2, f)
			if i%10 == 3 {
				c.put(apart, 1, 2, f)
			}
			if i%8 == 7 {
				c.acks(200*time.Microsecond, frame.Seq(1+i/8), frame.Seq(i-6), 8)
			}
		}
		return c.report(t)
	}
	for _, tt := range []struct {
		ours  bool
		apart time.Duration
		want  string
	}{
		{false, 25 * time.Microsecond, "warning: 4 frames from endpoint 1 to endpoint 2 came again at once, too soon for a timeout: " +
			"the network doubled them, or held them back until they had been sent again, or the acknowledgement after which they were sent again is not in the capture before, or the sender is OpenCPI's first C++ driver, which repeats some frames too early.\n"},
		{true, 25 * time.Microsecond, "warning: 4 frames from endpoint 1 to endpoint 2 came again at once, too soon for a timeout: the network doubled them, or held them back until they had been sent again, or the acknowledgement after which they were sent again is not in the capture before.\n"}, // who introduces itself waits for a reason
		// Recorded when they were read, which may be long after they came.
		{true, 0, "warning: 4 frames from endpoint 1 to endpoint 2 came again at once, too soon for a timeout: the network doubled them, or copies waited together before they were received, or the acknowledgement after which they were sent again is not in the capture before.\n"},
		{false, 0, "warning: 4 frames from endpoint 1 to endpoint 2 came again at once, too soon for a timeout: the network doubled them, or copies waited together before they were received, or the acknowledgement after which they were sent again is not in the capture before, or the sender is OpenCPI's first C++ driver, which repeats some frames too early.\n"},
	} {
		r := tell(tt.ours, tt.apart)
		if got := said(r); !strings.Contains(got, tt.want) || strings.Count(got, "doubled") != 1 {
			t.Errorf("ours %v: said\n%swant\n%s", tt.ours, got, tt.want)
		}
		if f := flowFrom(t, r, 1); f.Duplicates != 4 || f.Resent != 0 {
			t.Errorf("ours %v: %d copies at once, %d later", tt.ours, f.Duplicates, f.Resent)
		}
	}
}

// What gives buffers back carries no data, so bytes a second say nothing of it.
// Observation V8 (docs/peers.md).
func TestWindowOfDoorbells(t *testing.T) {
	c := newTrace()
	for i := range uint32(48) {
		apart := 10 * time.Microsecond
		c.put(apart, 1, 2, frameWith(1, 2, frame.Seq(1+i), frame.Message{Txn: 1 + i, CompletionAddr: 0x100 + 4*(i%8), CompletionValue: 1}))
		if i%8 == 7 {
			c.acks(4*time.Millisecond, frame.Seq(1+i/8), frame.Seq(i-6), 8)
		}
	}
	want := "note: A window of 8 seems to hold throughput from endpoint 1 to endpoint 2 at about 2,000 frames/s: never more frames were in flight, " +
		"so many were 6 times, and the next ones left as soon as some were acknowledged, which takes 4 ms (median). A program that waits for its own transactions looks the same.\n"
	if got := said(c.report(t)); got != want {
		t.Errorf("said\n%swant\n%s", got, want)
	}
}

// A frame that its sender gave up when it began anew was never acknowledged, and
// times are counted forwards whatever the clock did. Observation V8 (docs/peers.md).
func TestNoTimeIsNegative(t *testing.T) {
	for _, tt := range []struct {
		name string
		tell func(c *trace)
		want string
	}{
		{"began anew", func(c *trace) {
			for i := range uint32(4) { // another program, from id 1 on
				c.put(time.Millisecond, 1, 2, frameWith(1, 2, frame.Seq(1+i), request(1+i, i, 99)))
			}
		}, "warning: Frame 30 of endpoint 1 is in the capture 4 times within 601 ms; no acknowledgement of it is there before its sender restarted.\n"},
		{"clock set back before the acknowledgement", func(c *trace) {
			c.acks(-451*time.Millisecond, 2, 30, 1)
		}, "warning: Frame 30 of endpoint 1 is in the capture 4 times within 601 ms; its first acknowledgement in the capture came an unknown time after the last time.\n"},
		{"clock set back between the copies", func(c *trace) {
			f := frameWith(1, 2, 30, request(30, 29%8, 59))
			frame.PutAck(f, 7, 1)
			c.put(-620*time.Millisecond, 1, 2, f)
			c.acks(time.Millisecond, 2, 30, 1)
		}, "warning: Frame 30 of endpoint 1 is in the capture 5 times within an unknown time; its first acknowledgement in the capture came 1 ms after the last time.\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newTrace()
			c.at = time.Second
			for i := range uint32(30) {
				c.put(time.Millisecond, 1, 2, frameWith(1, 2, frame.Seq(1+i), request(1+i, i%8, 2*i+1)))
			}
			c.acks(time.Millisecond, 1, 1, 29)
			for range 3 {
				c.put(200*time.Millisecond, 1, 2, frameWith(1, 2, 30, request(30, 29%8, 59)))
			}
			tt.tell(c)
			r := c.report(t)
			if got := said(r); !strings.Contains(got, tt.want) || strings.Contains(got, "-") {
				t.Errorf("said\n%swant\n%s", got, tt.want)
			}
			if f := flowFrom(t, r, 1); f.Abandoned != len(f.Restarts) || f.Unacked != 0 || f.Acked != 30-f.Abandoned {
				t.Errorf("%d abandoned, %d not acknowledged, %d acknowledged, restarts %v", f.Abandoned, f.Unacked, f.Acked, f.Restarts)
			}
		})
	}
}

// OpenCPI's first C++ driver resends what a request says now: if that was posted
// again meanwhile, the frame has its old id and the transaction of a later one.
// It is a copy, and no other life. Observation V3, V8 (docs/peers.md).
func TestLiveHeaders(t *testing.T) {
	c := newTrace()
	for i := range uint32(24) {
		c.put(time.Millisecond, 1, 2, frameWith(1, 2, frame.Seq(101+i), request(501+i, i%8, 401)))
	}
	c.acks(time.Millisecond, 1, 101, 8)
	c.acks(0, 2, 112, 13)
	for range 2 { // three ids after each other, which buffers 0 to 2 use again under later ones
		for i := range uint32(3) {
			c.put(100*time.Millisecond, 1, 2, frameWith(1, 2, frame.Seq(109+i), request(517+i, i, 401)))
		}
	}
	c.acks(time.Millisecond, 3, 109, 3)
	r := c.report(t)
	f := flowFrom(t, r, 1)
	if f.Conflicts != 0 || len(f.Restarts) != 0 || f.Resent != 6 || f.LiveHeaders != 6 || f.Acked != 24 || f.Transactions.Completed != 24 {
		t.Errorf("%+v", f)
	}
	const want = "warning: 6 copies from endpoint 1 have the transaction id of a later frame: OpenCPI's first C++ driver sends again what a request " +
		"says by then, and it was posted again. Receivers that compare refuse such a copy.\n"
	if got := said(r); !strings.Contains(got, want) {
		t.Errorf("said\n%swant\n%s", got, want)
	}
}

// What is not known to be posted again may have been: then the third cause is named.
func TestIDUsedTwiceHasThreeCauses(t *testing.T) {
	c := newTrace()
	for i := range uint32(24) {
		c.put(time.Millisecond, 1, 2, frameWith(1, 2, frame.Seq(101+i), request(501+i, i%8, 401)))
	}
	c.put(time.Millisecond, 1, 2, frameWith(1, 2, 109, request(525, 0, 401))) // its own frame is not there
	const want = "warning: 1 frame from endpoint 1 has the id of another one: an old frame that the network held back, a sender that began anew, " +
		"or OpenCPI's first C++ driver, which sends again what a request says by then.\n"
	if got := said(c.report(t)); !strings.Contains(got, want) {
		t.Errorf("said\n%swant\n%s", got, want)
	}
}

// Some receivers write no data under count 0: quirks D1-1 and D1-2, observation
// V8 (docs/peers.md).
func TestDataUnderCountZero(t *testing.T) {
	const want = "warning: 1 message from endpoint 1 to endpoint 2 has data under the count 0, as OpenCPI's first C++ driver sends a transaction of " +
		"one message: OpenCPI's first driver and its hardware, when they receive it, write the completion word and drop the data.\n"
	r := analyze(t, openCapture(t, "udp-single-nometa"))
	if got := said(r); got != want {
		t.Errorf("said\n%swant\n%s", got, want)
	}
	if f := flowFrom(t, r, 1); f.Uncounted != 1 {
		t.Errorf("%d messages under count 0", f.Uncounted)
	}
}

// What the snap length took away is not what was wrong on the wire. Observation
// V8 (docs/peers.md).
func TestCutFramesAreNotMalformed(t *testing.T) {
	for _, snap := range []int{14, 16, 18, 23, 24, 25, 40, 47, 48, 49, 60, 100, 247} {
		c := newTrace()
		c.snap = snap
		for i := range uint32(8) {
			c.put(time.Millisecond, 1, 2, frameWith(1, 2, frame.Seq(1+i), request(1+i, i, 401), request(1+i, i, 401)))
			c.acks(time.Millisecond, frame.Seq(1+i), frame.Seq(1+i), 1)
		}
		r := c.report(t)
		cut := 8
		if snap < 24 {
			cut = 16
		}
		if r.Capture.Malformed != 0 || r.Capture.Cut != cut || strings.Contains(said(r), "malformed") {
			t.Errorf("snap length %d: %d malformed, %d cut: %s", snap, r.Capture.Malformed, r.Capture.Cut, said(r))
		}
	}
	// A header that cannot have fitted is malformed, cut or not.
	c := newTrace()
	c.snap = 16
	c.put(0, 1, 2, make([]byte, 9))
	if k := c.report(t).Capture; k.Malformed != 1 || k.Cut != 1 {
		t.Errorf("%+v", k)
	}
}

// The captures of real peers are well formed, so they are when they are cut.
func TestRealPeersCutAnywhere(t *testing.T) {
	for _, name := range []string{"ether-loss5-pingpong", "ether2-coalesce", "fpga-send-w1-ocpi-dg", "udp-many"} {
		for snap := range 80 {
			a := inspect.New()
			for p, err := range captured.ReadFile("../frame/testdata/captures/"+name+".pcap", captured.Options{}) {
				if err != nil {
					t.Fatal(err)
				}
				p.Data = slices.Clip(p.Data[:min(snap, len(p.Data))])
				a.Add(p)
			}
			if k := a.Report().Capture; k.Malformed != 0 {
				t.Errorf("%s, %d bytes of each frame: %d of %d malformed", name, snap, k.Malformed, k.Frames)
			}
		}
	}
}

const unanswered = "nothing of an answer is in the capture: unless only this direction was captured, nobody is there, or nobody who takes it for a peer, or it has a key and takes nothing without.\n"

// TestNobodyAnswers checks that an endpoint that asks again and again who is there, or for a session, is told of, unless it was answered or the capture has one direction alone.
func TestNobodyAnswers(t *testing.T) {
	again := func(s *story, to frame.EndpointID, n int) {
		for range n {
			s.hello(1, to, 10)
		}
	}
	for _, tt := range []struct {
		name string
		tell func(s *story)
		want string
	}{
		{"asked in vain", func(s *story) { again(s, 0, 12) }, "problem: Endpoint 1 (02:00:00:00:00:01) asked 12 times who is at 02:00:00:00:00:00, and " + unanswered},
		{"asked once", func(s *story) { again(s, 0, 1) }, ""},
		{"asked and told", func(s *story) { again(s, 0, 2); s.hello(0, 1, 10) }, ""},
		{"another was told", func(s *story) { again(s, 0, 2); s.hello(0, 3, 10) }, "problem: Endpoint 1 (02:00:00:00:00:01) asked twice who is at 02:00:00:00:00:00, and " + unanswered},
		{"asked for a session in vain", func(s *story) { again(s, 2, 12) }, "problem: Endpoint 1 asked endpoint 2 for a session 12 times, and " + unanswered},
		{"asked for a session once", func(s *story) { again(s, 2, 1) }, ""},
		{"asked for a session, and answered", func(s *story) { again(s, 2, 2); s.hello(2, 1, 11) }, ""},
		{"asked for a session, in one direction", func(s *story) {
			again(s, 2, 2)
			b := make([]byte, frame.HandshakeSize)
			(&frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 10, Receiver: 11, Check: 5}).Put(b, 2, 1)
			s.a.Add(s.packet(1, 2, b))
		}, ""},
		{"more than are followed", func(s *story) {
			for i := range 129 {
				s.hello(frame.EndpointID(i+1), 0, 10)
			}
		}, "note: 1 frame of further flows were only counted: at most 128 flows are followed.\n"},
	} {
		s := newStory()
		tt.tell(s)
		if got := said(s.a.Report()); got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}
