package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
)

// TestAnnouncedNotSent: a client has the server post only, and announces by immediate data what it never sent.
func TestAnnouncedNotSent(t *testing.T) {
	t.Parallel()
	_, c, _ := verbsEnds(t, nil)
	p := Plan{Size: 64, Depth: 4, Peers: 1, Active: 4, BothWays: 1}
	l := c.control
	ctx := t.Context()
	l.tell(ctx, kindOpen, &opening{Plan: p, Verb: VerbSend, Receive: 1})
	if _, err := c.answer(ctx, kindOpen); err != nil {
		t.Fatal(err)
	}
	var posted []verbs.Receive
	for range 64 {
		posted = append(posted, verbs.Receive{Data: make([]byte, 64)})
	}
	q, err := c.Host.Dial(ctx, c.Address, &verbs.Options{Private: encode(&hello{protocol, version, pairMeasured, c.welcome.Session, 0}), Extensions: verbs.Immediates, Posted: posted, PeerToPeer: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.begin(ctx, p); err != nil {
		t.Fatal(err)
	}
	q.Post(&verbs.Work{Op: verbs.OpImmediate, Payload: immediate(0, 1)})
	time.Sleep(time.Second)
}

// TestSentBeforeItIsNoted: a client sends on a queue pair the moment it is there, so that completions come before the server has
// noted the queue pair.
func TestSentBeforeItIsNoted(t *testing.T) {
	t.Parallel()
	_, c, _ := verbsEnds(t, nil)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	const peers = 256
	p := Plan{Size: 64, Depth: 4, Peers: peers, Active: 4}
	for ctx.Err() == nil {
		c.control.tell(t.Context(), kindOpen, &opening{Plan: p, Verb: VerbSend})
		if _, err := c.answer(t.Context(), kindOpen); err != nil {
			t.Fatal(err)
		}
		turn := make(chan bool, 32)
		for i := range peers {
			turn <- true
			go func() {
				defer func() { <-turn }()
				early(t, c.Host, c.Address, encode(&hello{protocol, version, pairMeasured, c.welcome.Session, uint32(i)}))
			}()
		}
		for range cap(turn) {
			turn <- true
		}
	}
}

// early opens a queue pair and has a Send of 64 bytes follow the request blindly, so that it may lie there when the server begins to receive.
func early(t *testing.T, h *verbs.Host, address string, private []byte) {
	nc, err := net.Dial("tcp", address[4:])
	if err != nil {
		return
	}
	defer nc.Close()
	m, err := mpa.Initiate(context.Background(), nc, &mpa.Options{Private: private, NoCRC: true, IRD: 2, ORD: 2})
	if err != nil {
		return
	}
	s := &sends{left: 1, data: make([]byte, 64)}
	m.Send(s)
	time.Sleep(2 * time.Millisecond)
	m.Close()
}

type sends struct {
	left int
	msn  uint32
	data []byte
}

func (s *sends) Begin()   {}
func (s *sends) End()     {}
func (s *sends) Sent(int) {}
func (s *sends) Next(m *ddp.Message) bool {
	if s.left == 0 {
		return false
	}
	s.left--
	s.msn++
	m.Header = ddp.Header{Control: 0x40 | 3, MSN: s.msn}
	m.InlineSize, m.Data, m.Length = 0, []ddp.Span{{Bytes: s.data}}, uint32(len(s.data))
	return true
}

// TestClientThatDoesNotRead: a client asks again and again, and does not read the answers. When the socket is full it gives way.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	s := verbsServer(t)
	s.GiveUp = time.Second
	s.Failed = func(_ fmt.Stringer, err error) { t.Logf("server: %v", err) }
	ctx := serving(t, s)
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2048)
			syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 600) // as of any wire; loopback's segments make its buffers large
		})
	}}
	nc, err := d.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	m, err := mpa.Initiate(ctx, nc, &mpa.Options{Private: encode(&hello{Protocol: protocol, Version: version, Kind: pairControl}), NoCRC: true, IRD: 2, ORD: 2})
	if err != nil {
		t.Fatal(err)
	}
	bad := binary.LittleEndian.AppendUint32(nil, kindOpen)
	bad = append(bad, encode(&opening{Plan: Plan{Size: 64, Depth: 1, Peers: 1, Active: 1}, Verb: VerbWrite})...)
	src := &sends{data: bad}
	began := time.Now()
	n := 0
	for ; time.Since(began) < 2*time.Second; n++ {
		src.left = 1
		if _, err := m.Send(src); err != nil {
			t.Logf("after %d: %v", n, err)
			break
		}
		if n%16 == 15 {
			time.Sleep(300 * time.Microsecond)
		}
		if n%1000 == 0 && time.Since(began) > time.Second {
			s.mu.Lock()
			k := s.client
			s.mu.Unlock()
			if k == nil {
				break
			}
		}
	}
	t.Logf("%d openings sent; nothing more is said, and nothing read", n)
	for range 24 {
		h, _ := verbs.Open("tcp:127.0.0.1")
		v := &VerbsClient{Host: h, Address: "tcp:" + s.Listener.Addr().String(), introduction: time.Minute}
		err = v.Join(ctx)
		if err == nil {
			v.Close()
			h.Close()
			return
		}
		h.Close()
		time.Sleep(250 * time.Millisecond)
	}
	t.Errorf("six seconds later the server still serves nobody: %v", err)
	m.Close()
}

// TestRejectedStrangers: strangers that are rejected, and do not close, keep no client waiting.
func TestRejectedStrangers(t *testing.T) {
	t.Parallel()
	s := verbsServer(t)
	ctx := serving(t, s)
	at := s.Listener.Addr().String()
	request := append([]byte("MPA ID Req Frame"), 0, 1, 0, 0)
	var made atomic.Int64
	const strangers = 1200
	for i := range strangers {
		go func() {
			time.Sleep(time.Duration(i) * 2 * time.Millisecond)
			for ctx.Err() == nil {
				nc, err := net.Dial("tcp", at)
				if err != nil {
					return
				}
				made.Add(1)
				nc.Write(request)
				buf := make([]byte, 64)
				for err == nil {
					_, err = nc.Read(buf)
				}
				nc.Close()
				time.Sleep(time.Second)
			}
		}()
	}
	for began := time.Now(); made.Load() < strangers && time.Since(began) < time.Minute; {
		time.Sleep(10 * time.Millisecond)
	}
	began, before := time.Now(), made.Load()
	for i := range 5 {
		h, _ := verbs.Open("tcp:127.0.0.1")
		v := &VerbsClient{Host: h, Address: "tcp:" + at, introduction: 4 * Introduction} // a busy machine takes its time
		err := v.Join(ctx)
		for tries := 1; err != nil && tries < 10; tries++ {
			t.Log(err) // where the machine is so busy that it gave its place to a stranger
			err = v.Join(ctx)
		}
		if err != nil {
			t.Errorf("client %d was not served: %v", i, err)
		} else {
			v.Close()
		}
		h.Close()
		time.Sleep(100 * time.Millisecond)
	}
	rate := float64(made.Load()-before) / time.Since(began).Seconds()
	t.Logf("strangers came at %.0f a second", rate)
}
