package mpa

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// randomMessages are messages of all sizes, in one to many pieces, some of them guarded.
func randomMessages(rnd *rand.Rand, count, most int, guard ddp.Guard) (list []ddp.Message, want []message) {
	for i := range count {
		n := rnd.IntN(200)
		switch rnd.IntN(4) {
		case 0:
			n = rnd.IntN(5000)
		case 1:
			n = rnd.IntN(most)
		}
		m := send(uint32(i), pattern(n, i))
		if rnd.IntN(2) == 0 {
			m = write(rnd.Uint32(), rnd.Uint64(), pattern(n, i))
		}
		var pieces []int
		for range rnd.IntN(5) {
			pieces = append(pieces, rnd.IntN(n/2+10))
		}
		if rnd.IntN(20) == 0 {
			for range 300 {
				pieces = append(pieces, rnd.IntN(n/100+2))
			}
		}
		out := outgoing(m, rnd.IntN(min(n, ddp.InlineSize)+1), pieces...)
		if rnd.IntN(2) == 0 {
			for j := range out.Data {
				out.Data[j].Guard = guard
			}
		}
		list, want = append(list, out), append(want, m)
	}
	return list, want
}

// TestProperty sends random messages both ways at once over connections of all kinds: what was sent
// arrives, once, in order, and nothing else.
func TestProperty(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, k := range kinds {
		for _, crc := range []bool{false, true} {
			for _, long := range []bool{false, true} {
				for _, tiny := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, CRC %v, long %v, tiny %v", k.name, crc, long, tiny), func(t *testing.T) {
						seed := rand.Uint64()
						t.Logf("seed %d", seed)
						a, b := k.pair(t)
						most := 300000
						for _, nc := range []net.Conn{a, b} {
							if s, ok := nc.(interface {
								SetReadBuffer(int) error
								SetWriteBuffer(int) error
							}); ok && tiny {
								s.SetReadBuffer(k.tiny)
								s.SetWriteBuffer(k.tiny)
								most = max(30000, k.tiny)
							}
						}
						ca, cb := open(t, a, b, &Options{NoCRC: !crc, Strict: !long}, &Options{NoCRC: true})
						done := make(chan error, 4)
						for i, way := range [][2]*Conn{{ca, cb}, {cb, ca}} {
							rnd := rand.New(rand.NewPCG(seed, uint64(i)))
							guard := &gate{}
							list, want := randomMessages(rnd, 60, most, guard)
							src := &listSource{t: t, list: list}
							go func() { done <- drain(way[0], src) }()
							go func() {
								sink := newSink(t)
								sink.guard = guard
								if tiny == long { // into several places
									rnd := rand.New(rand.NewPCG(seed, 7))
									sink.split = func() int { return 1 + rnd.IntN(1+rnd.IntN(2*longPayload)) }
								}
								receive := way[1].Receive
								if i == 1 {
									receive = way[1].Watch
								}
								for len(sink.got) < len(want) {
									if err := receive(sink); err != nil {
										done <- fmt.Errorf("after %d messages: %w", len(sink.got), err)
										return
									}
								}
								same(t, "received", sink.got, want)
								done <- nil
							}()
							defer func() {
								if src.sent != len(want) || guard.in != 0 {
									t.Errorf("%d of %d messages sent; %d inside the guard", src.sent, len(want), guard.in)
								}
							}()
						}
						for range 4 {
							if err := <-done; err != nil {
								t.Fatal(err)
							}
						}
					})
				}
			}
		}
	}
	noMoreGoroutines(t, before)
}

func noMoreGoroutines(t *testing.T, before int) {
	t.Helper()
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	b := make([]byte, 1<<16)
	t.Errorf("%d goroutines, before %d:\n%s", runtime.NumGoroutine(), before, b[:runtime.Stack(b, true)])
}

// TestSendDoesNotWait: with a peer that does not read, Send keeps what the socket does not take, and
// tells of those messages that are wholly with it.
func TestSendDoesNotWait(t *testing.T) {
	for _, crc := range []bool{false, true} {
		a, b := tcpPair(t, 0)
		ca, cb := open(t, a, b, &Options{NoCRC: !crc}, &Options{NoCRC: true})
		var list []ddp.Message
		var want []message
		for i := range 400 {
			m := send(uint32(i), pattern(100000, i))
			list, want = append(list, outgoing(m, 0)), append(want, m)
		}
		src := &listSource{t: t, list: list}
		for {
			p, err := ca.Send(src)
			if err != nil || p == Idle {
				t.Fatalf("40 MB nobody reads are sent: %v, %v", p, err)
			}
			if p == Blocked {
				break
			}
		}
		sent := src.sent
		if p, err := ca.Send(src); p != Blocked || err != nil || sent == 0 || src.sent != sent || src.next == len(list) {
			t.Fatalf("again: %v, %v; %d and %d sent of %d taken", p, err, sent, src.sent, src.next)
		}
		done := make(chan error, 1)
		go func() { done <- drain(ca, src) }()
		sink := newSink(t)
		for len(sink.got) < len(want) {
			if err := cb.Receive(sink); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "received", sink.got, want)
		if err := <-done; err != nil || src.sent != len(list) {
			t.Errorf("%v, %d sent", err, src.sent)
		}
		// Who waits for room is woken by Close.
		src = &listSource{t: t, list: list}
		for p := Busy; p != Blocked; {
			var err error
			if p, err = ca.Send(src); err != nil {
				t.Fatal(err)
			}
		}
		go func() { done <- drain(ca, src) }() // one Flush may find that the peer's system has taken more by then
		ca.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("to send on a closed connection: %v", err)
		}
	}
}

// RDMAP-102: memory that is withdrawn while it is being sent ends the connection, and the peer does not get a
// good frame of other bytes.
func TestWithdrawnWhileSending(t *testing.T) {
	a, b := tcpPair(t, 0)
	ca, cb := open(t, a, b, &Options{NoCRC: true}, &Options{NoCRC: true})
	g := &gate{}
	m := outgoing(write(1, 0, pattern(40<<20, 1)), 0)
	m.Data[0].Guard = g
	src := &listSource{t: t, list: []ddp.Message{m}}
	for p := Busy; p != Blocked; {
		var err error
		if p, err = ca.Send(src); err != nil || p == Idle {
			t.Fatal(p, err)
		}
	}
	if !g.withdraw() {
		t.Fatal("somebody is in while nobody sends")
	}
	clear(m.Data[0].Bytes)
	sink := newSink(t)
	received := receiving(cb, sink)
	err := flushAll(ca, src)
	if !errors.Is(err, ErrWithdrawn) || !errors.Is(err, ddp.Lost) || src.sent != 0 || !strings.Contains(err.Error(), "aborted") {
		t.Errorf("%v, %d sent", err, src.sent)
	}
	if err := <-received; err == io.EOF || !errors.Is(err, ddp.Lost) {
		t.Errorf("the peer sees %v", err)
	}
	want := pattern(40<<20, 1)
	at := 0
	for _, p := range sink.spans[:len(sink.spans)-1] { // the last is not whole
		got := p.around[margin : len(p.around)-margin]
		if string(got) != string(want[at:at+len(got)]) {
			t.Fatalf("a frame of other bytes at %d", at)
		}
		at += len(got)
	}
	if _, err := ca.Send(src); !errors.Is(err, ErrWithdrawn) {
		t.Errorf("afterwards %v", err)
	}
}

// Memory that is withdrawn before any of a frame has left costs only its message, and the peer can be told.
func TestWithdrawnBeforeSending(t *testing.T) {
	for _, k := range kinds {
		a, b := k.pair(t)
		ca, cb := open(t, a, b, nil, nil)
		gone := outgoing(write(1, 0, pattern(100, 1)), 0)
		gone.Data[0].Guard = &gate{shut: true}
		first, last := send(1, pattern(10, 1)), send(2, pattern(20, 2))
		src := &listSource{t: t, list: []ddp.Message{outgoing(first, 0), gone, outgoing(last, 0)}}
		done := make(chan error, 1)
		go func() {
			if err := drain(ca, src); !errors.Is(err, ErrWithdrawn) || errors.Is(err, ddp.Lost) || src.sent != 1 {
				t.Errorf("%s: %v, %d sent", k.name, err, src.sent)
			}
			done <- drain(ca, src)
		}()
		sink := newSink(t)
		for len(sink.got) < 2 {
			if err := cb.Receive(sink); err != nil {
				t.Fatal(err)
			}
		}
		same(t, k.name, sink.got, []message{first, last})
		if err := <-done; err != nil || src.sent != 1 {
			t.Errorf("%s: %v, %d sent: the second would be the one that was given up", k.name, err, src.sent)
		}
	}
}

// RDMAP-102: memory that is withdrawn while it is being filled is not touched any more.
func TestWithdrawnWhileReceiving(t *testing.T) {
	for _, k := range kinds {
		for _, n := range []int{100, 60000} {
			a, b := k.pair(t)
			_, cb := open(t, a, b, &Options{NoCRC: true}, &Options{NoCRC: true})
			wire := encode(t, framer{copies: true}, outgoing(write(1, 0, pattern(n, 1)), 0))
			g := &gate{}
			sink := newSink(t)
			sink.guard = g
			half := make(chan struct{})
			go func() {
				a.Write(wire[:len(wire)/2])
				<-half
				a.Write(wire[len(wire)/2:])
			}()
			for taken := 0; taken < len(wire)/2-LengthSize-ddp.TaggedHeader; taken = cb.parser.placed {
				if err := cb.Receive(sink); err != nil {
					t.Fatal(err)
				}
			}
			if !g.withdraw() {
				t.Fatal("somebody is in while nobody receives")
			}
			before := string(sink.spans[0].around)
			close(half)
			err := receiveAll(cb, sink)
			if err != ddp.TaggedSTag || len(sink.got) != 0 || string(sink.spans[0].around) != before || g.in != 0 {
				t.Errorf("%s, %d octets: %v, %d delivered, changed %v", k.name, n, err, len(sink.got), string(sink.spans[0].around) != before)
			}
		}
	}
}

// MPA-009, with CRC: memory is what it was, however the frame is damaged.
func TestDamageChangesNothing(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		wire := encode(t, framer{crc: true, copies: true}, outgoing(write(1, 0, pattern(rnd.IntN(3000), 1)), 0))
		wire[rnd.IntN(len(wire))] ^= 1 << rnd.IntN(8)
		wire = append(wire, make([]byte, maxFrame)...) // the length may have changed
		sink := newSink(t)
		if _, err := parseIn(t, &parser{crc: true}, sink, wire, whole); err != ddp.Checksum || len(sink.spans)+len(sink.got) != 0 {
			t.Fatalf("seed %d: %v, %d places, %d messages", seed, err, len(sink.spans), len(sink.got))
		}
	}
}

// Nothing is allocated per message, and an idle connection holds no buffer.
func TestAllocations(t *testing.T) {
	for _, crc := range []bool{false, true} {
		for _, long := range []bool{false, true} {
			a, b := tcpPair(t, 0)
			ca, cb := open(t, a, b, &Options{NoCRC: !crc, Strict: !long}, &Options{NoCRC: true})
			src := &stock{data: pattern(20000, 1), size: 20000}
			sink := &place{memory: make([]byte, 20000)}
			once := func() {
				src.left, sink.left = 4, 4
				if p, err := ca.Send(src); p != Idle || err != nil {
					t.Fatal(p, err)
				}
				for sink.left > 0 {
					if err := cb.Receive(sink); err != nil {
						t.Fatal(err)
					}
				}
			}
			if n := fixture.Allocations(100, once); n > 0 {
				t.Errorf("CRC %v, long %v: %v allocations for 4 messages", crc, long, n)
			}
			waits := make(chan error, 1)
			go func() { waits <- cb.Receive(sink) }()
			if n := unsafe.Sizeof(*ca); n > 2048 {
				t.Errorf("a connection takes %d octets", n)
			}
			if ca.out != nil {
				t.Error("a sender that has sent all holds a batch")
			}
			cb.Close()
			if <-waits; cb.in != nil {
				t.Error("a receiver that waits holds a buffer")
			}
		}
	}
}

// S2 (docs/quirks.md): with CRC a stranger gets no frame that a segment's end cuts: short ones share a segment, none is
// begun in one and ended in the next.
func TestRecords(t *testing.T) {
	a, b := tcpPair(t, ethernet)
	ca, cb := open(t, a, b, &Options{Strict: true}, nil)
	segments := func() int {
		var info *unix.TCPInfo
		raw, err := a.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
		if err != nil {
			t.Fatal(err)
		}
		return int(info.Data_segs_out - info.Total_retrans)
	}
	for _, c := range []struct{ messages, length, want int }{
		{10, 1000, 10},       // frames of 1024 octets in segments of 1448
		{10, 600, 5},         // 624
		{150, 100, 14},       // 124: eleven in a segment
		{1, 200 * 1424, 200}, // frames as long as a segment
		{3, 2000, 6},
	} {
		before := segments()
		var list []ddp.Message
		var want []message
		for i := range c.messages {
			m := send(uint32(i), pattern(c.length, i))
			list, want = append(list, outgoing(m, 0)), append(want, m)
		}
		done := make(chan error, 1)
		src := &listSource{t: t, list: list}
		go func() { done <- drain(ca, src) }()
		sink := newSink(t)
		for len(sink.got) < len(want) {
			if err := cb.Receive(sink); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		same(t, "received", sink.got, want)
		most := LengthSize + ca.framer.segment + CRCSize
		if most != 1448 && most != ethernet {
			t.Fatalf("frames of up to %d octets on a path of %d", most, ethernet)
		}
		if got := segments() - before; got != c.want {
			t.Errorf("%d messages of %d octets left in %d segments, want %d", c.messages, c.length, got, c.want)
		}
	}
}
