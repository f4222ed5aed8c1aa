package mpa

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// A kind of connection, for tests that shall hold for each.
type kind struct {
	name string
	pair func(testing.TB) (net.Conn, net.Conn)
	// tiny is a size of socket buffers that fill up soon, and with which TCP does not wait for its
	// timers all the time: more than a segment.
	tiny int
}

var kinds = []kind{
	{"TCP", func(t testing.TB) (net.Conn, net.Conn) { return tcpPair(t, 0) }, 100000},
	{"TCP, short segments", func(t testing.TB) (net.Conn, net.Conn) { return tcpPair(t, 536) }, 2000},
	{"Unix", unixPair, 2000},
	{"pipe", func(t testing.TB) (net.Conn, net.Conn) {
		a, b := net.Pipe()
		t.Cleanup(func() { a.Close(); b.Close() })
		return a, b
	}, 0},
}

func unixPair(t testing.TB) (net.Conn, net.Conn) {
	l, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// RDMAP-078, MPA-018: a connection that was used for something else before becomes one of RDMA when both programs want it, and TCP
// waits for nothing from then on.
func TestOpenLater(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			a, b := k.pair(t)
			if tcp, ok := a.(*net.TCPConn); ok {
				tcp.SetNoDelay(false)
			}
			for i, way := range [][2]net.Conn{{a, b}, {b, a}, {a, b}} {
				go way[0].Write([]byte("a line\n"))
				got := make([]byte, 7)
				if _, err := io.ReadFull(way[1], got); err != nil || string(got) != "a line\n" {
					t.Fatalf("line %d: %q, %v", i, got, err)
				}
			}
			ca, cb := open(t, a, b, nil, nil)
			src, sink := &listSource{t: t, list: []ddp.Message{outgoing(send(1, []byte("hello")), 2)}}, newSink(t)
			sent := make(chan error, 1)
			go func() { sent <- drain(ca, src) }()
			for len(sink.got) == 0 {
				if err := cb.Receive(sink); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-sent; err != nil || string(sink.got[0].payload) != "hello" {
				t.Errorf("%v, %q", err, sink.got[0].payload)
			}
			if ca.tcp {
				off := true
				ca.raw.Control(func(fd uintptr) {
					n, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY)
					off = err != nil || n == 0
				})
				if off {
					t.Error("TCP waits for more to send")
				}
			}
		})
	}
}

func TestOpen(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			a, b := k.pair(t)
			ca, cb := open(t, a, b, &Options{Private: []byte("I am"), IRD: 1, ORD: 2}, &Options{Private: []byte("So am I"), IRD: 3, ORD: 4})
			ga, gb := ca.Agreed(), cb.Agreed()
			if string(ga.Private) != "So am I" || string(gb.Private) != "I am" || !ga.Long || !gb.Long || !ga.CRC || !gb.CRC ||
				ga.IRD != 1 || ga.ORD != 2 || gb.IRD != 2 || gb.ORD != 1 {
				t.Errorf("%+v and %+v", ga, gb)
			}
			if ca.Blocks() != (k.name == "pipe") || ca.RemoteAddr().String() != b.LocalAddr().String() {
				t.Errorf("blocks %v, remote address %v", ca.Blocks(), ca.RemoteAddr())
			}
			// A short message each way, and a good end.
			for _, way := range [][2]*Conn{{ca, cb}, {cb, ca}} {
				done := make(chan error, 1)
				src := &listSource{t: t, list: []ddp.Message{outgoing(send(1, []byte("hello")), 2)}}
				go func() { done <- drain(way[0], src) }()
				sink := newSink(t)
				for len(sink.got) == 0 {
					if err := way[1].Receive(sink); err != nil {
						t.Fatal(err)
					}
				}
				if err := <-done; err != nil || src.sent != 1 || string(sink.got[0].payload) != "hello" {
					t.Errorf("%v, %d sent, %q", err, src.sent, sink.got[0].payload)
				}
			}
			if err := ca.CloseWrite(); (k.name == "pipe") != errors.Is(err, errors.ErrUnsupported) || k.name != "pipe" && err != nil {
				t.Errorf("CloseWrite: %v", err)
			}
			if k.name == "pipe" {
				ca.Close()
			}
			for range 2 {
				if err := cb.Receive(newSink(t)); err != io.EOF {
					t.Errorf("at the end: %v", err)
				}
			}
			cb.Close()
			if err := cb.Close(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("closed twice: %v", err)
			}
		})
	}
}

// peer is the other side by hand: it sends what, a piece at a time, and returns what comes back.
func peer(nc net.Conn, what []byte, step int) []byte {
	for len(what) > 0 {
		n := min(step, len(what))
		if _, err := nc.Write(what[:n]); err != nil {
			break
		}
		what = what[n:]
	}
	nc.SetReadDeadline(time.Now().Add(time.Minute))
	got, _ := io.ReadAll(nc)
	return got
}

// MPA-010, MPA-012, MPA-013: what the responder does with requests.
func TestRequests(t *testing.T) {
	for _, c := range []struct {
		name, request string
		want          error
		answer        string // what the peer gets before the end
	}{
		{"Rev 1", requestHex + "4001 0002 4869", nil, replyHex + "4001 0000"},
		{"Rev 1 without CRC, and its R", requestHex + "2001 0000", nil, replyHex + "4001 0000"},
		{"Rev 2", requestHex + "4002 0000", nil, replyHex + "4002 0000"},
		{"Rev 2 with IRD and ORD", requestHex + "5002 0004 0004 0003", nil, replyHex + "5002 0004 0003 0004"},
		{"Rev 2 with 0x3fff", requestHex + "5002 0004 3fff 3fff", nil, replyHex + "5002 0004 3fff 3fff"},
		{"Rev 2, reserved bits", requestHex + "4f02 0000", nil, replyHex + "4002 0000"},
		{"peer-to-peer, Write and Read", requestHex + "5002 0004 8004 c003", nil, replyHex + "5002 0004 8003 8004"},
		{"peer-to-peer, Send", requestHex + "5002 0004 c004 0003", nil, replyHex + "5002 0004 c003 0004"},
		{"peer-to-peer, nothing", requestHex + "5002 0004 8004 0003", ErrReady, replyHex + "7002 0004 0000 0000"},
		{"512 octets of private data", requestHex + "4001 0200" + strings.Repeat("aa", 512), nil, replyHex + "4001 0000"},
		{"MPA-005: markers", requestHex + "c002 0000", ErrMarkers, replyHex + "6002 0000"},
		{"MPA-005: markers, with IRD and ORD", requestHex + "9002 0004 0001 0001", ErrMarkers, replyHex + "3002 0004 0000 0000"},
		{"S and no IRD and ORD", requestHex + "5002 0003 000000", ErrEnhanced, replyHex + "7002 0004 0000 0000"},
		{"Rev 0", requestHex + "4000 0000", ErrRevision, ""},
		{"Rev 3", requestHex + "4003 0000", ErrRevision, ""},
		{"too much private data", requestHex + "4001 0201", ErrPrivate, ""},
		{"another key", "4d504120494420526571204672616d66", ErrNotMPA, ""},
	} {
		for _, k := range kinds {
			for _, step := range []int{1000, 1} {
				t.Run(c.name+", "+k.name, func(t *testing.T) {
					t.Parallel()
					a, b := k.pair(t)
					got := make(chan []byte, 1)
					go func() { got <- peer(a, unhex(t, c.request), step) }()
					r, err := Await(t.Context(), b, time.Minute)
					var conn *Conn
					if err == nil {
						conn, err = r.Accept(t.Context(), &Options{IRD: 8, ORD: 8})
					}
					if !errors.Is(err, c.want) {
						t.Errorf("%v, want %v", err, c.want)
					}
					if conn != nil {
						conn.Close()
					}
					if answer := <-got; !bytes.Equal(answer, unhex(t, c.answer)) {
						t.Errorf("answered %x, want %s", answer, c.answer)
					}
				})
			}
		}
	}
}

// MPA-010: octets behind the request before the reply.
func TestEarlyFrame(t *testing.T) {
	a, b := tcpPair(t, 0)
	if _, err := a.Write(append(unhex(t, requestHex+"4001 0000"), 0)); err != nil {
		t.Fatal(err)
	}
	r, err := Await(t.Context(), b, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Accept(t.Context(), nil); !errors.Is(err, ErrEarly) {
		t.Errorf("%v", err)
	}
	a.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := a.Read(make([]byte, 100)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the peer reads %d octets, %v", n, err)
	}
}

// MPA-012: what the initiator does with replies.
func TestReplies(t *testing.T) {
	terminate := func(f ddp.Fault, m *ddp.Message) {
		m.Header = ddp.Header{Control: 0x47, QN: 2, MSN: 1}
		m.Inline, m.InlineSize, m.Length = [ddp.InlineSize]byte{byte(f.Layer()<<4 | f.Type()), f.Code()}, 4, 4
	}
	for _, c := range []struct {
		name, reply string
		want        error
		said        string // behind the request
	}{
		{"good", replyHex + "1002 0004 8000 8000", nil, ""},
		{"good, with a frame behind it", replyHex + "1002 0004 8000 8000" + "000e c140 00000001 0000000000000000 ebd34c5f", nil, ""},
		{"reject", replyHex + "3002 0008 0000 0000 4e6f2e21", &RejectedError{}, ""},
		{"reject in Rev 1", replyHex + "2001 0000", &RejectedError{}, ""},
		{"markers", replyHex + "9002 0004 8000 8000", ErrMarkers, ""},
		{"Rev 1", replyHex + "0001 0000", ErrRevision, ""},
		{"Rev 2 without IRD and ORD", replyHex + "0002 0000", ErrRevision, ""},
		{"Rev 7", replyHex + "0007 0000", ErrRevision, ""},
		{"S and nothing", replyHex + "1002 0000", ErrEnhanced, ""},
		{"513 octets of private data", replyHex + "1002 0201", ErrPrivate, ""},
		{"another protocol", "535348", ErrNotMPA, ""},
		{"half a reply, and the end", replyHex + "1002", ErrLost, ""},
		{"MPA-014: more ORD than our IRD", replyHex + "1002 0004 8000 8001", ErrReads,
			"0016 4147 00000000 00000002 00000001 00000000 20060000 00000000"},
		{"MPA-015: no frame agreed on", replyHex + "1002 0004 8000 0000", ErrReady,
			"0016 4147 00000000 00000002 00000001 00000000 20070000 00000000"},
		{"MPA-015: with CRC", replyHex + "5002 0004 0000 0000", ErrReady,
			"0016 4147 00000000 00000002 00000001 00000000 20070000 1bd2babe"},
	} {
		for _, k := range kinds {
			for _, step := range []int{1000, 1} {
				t.Run(c.name+", "+k.name, func(t *testing.T) {
					t.Parallel()
					a, b := k.pair(t)
					got := make(chan []byte, 1)
					go func() {
						request := make([]byte, 24)
						io.ReadFull(b, request)
						for reply := unhex(t, c.reply); len(reply) > 0; {
							n, err := b.Write(reply[:min(step, len(reply))])
							if err != nil {
								break
							}
							reply = reply[n:]
						}
						if strings.Contains(c.name, "half") {
							b.Close()
						}
						b.SetReadDeadline(time.Now().Add(time.Minute))
						said, _ := io.ReadAll(b)
						got <- append(request, said...)
					}()
					conn, err := Initiate(t.Context(), a, &Options{NoCRC: true, PeerToPeer: true, Strict: true, Terminate: terminate, Timeout: time.Minute})
					var rejected *RejectedError
					if _, refusal := c.want.(*RejectedError); refusal && !errors.As(err, &rejected) || !refusal && !errors.Is(err, c.want) {
						t.Errorf("%v, want %v", err, c.want)
					}
					if conn != nil {
						if strings.Contains(c.name, "behind") {
							sink := newSink(t)
							for len(sink.got) == 0 {
								if err := conn.Receive(sink); err != nil {
									t.Fatal(err)
								}
							}
						}
						conn.Close()
					}
					want := unhex(t, requestHex+"1002 0004 c000 c000"+c.said)
					if said := <-got; !bytes.Equal(said, want) {
						t.Errorf("said %x, want %x", said, want)
					}
				})
			}
		}
	}
}

// Each frame cut short at each octet: the end of the connection is told.
func TestCutShort(t *testing.T) {
	request := unhex(t, requestHex+"5002 0007 0001 0001 616263")
	reply := unhex(t, replyHex+"5002 0007 0001 0001 616263")
	for n := range request {
		a, b := unixPair(t)
		go func() { a.Write(request[:n]); a.Close() }()
		if _, err := Await(t.Context(), b, time.Minute); !errors.Is(err, ErrLost) {
			t.Fatalf("a request of %d octets: %v", n, err)
		}
		c, d := unixPair(t)
		go func() {
			io.ReadFull(d, make([]byte, len(request)-3))
			d.Write(reply[:n])
			d.Close()
		}()
		if _, err := Initiate(t.Context(), c, nil); !errors.Is(err, ErrLost) {
			t.Fatalf("a reply of %d octets: %v", n, err)
		}
	}
}

// MPA-017: silence, whole or after a part, ends by itself; so does waiting when the context ends.
func TestPatience(t *testing.T) {
	for _, k := range kinds {
		for _, part := range []int{0, 7, 20, 22} {
			a, b := k.pair(t)
			go peer(a, unhex(t, requestHex+"5002 0004 0001 0001")[:part], 1)
			_, err := Await(t.Context(), b, 30*time.Millisecond)
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "30ms") {
				t.Errorf("%s, %d octets of a request: %v", k.name, part, err)
			}
			a, b = k.pair(t)
			go peer(b, unhex(t, replyHex+"5002 0004 0001 0001")[:part], 1)
			if k.name == "pipe" {
				go io.ReadFull(b, make([]byte, 24))
			}
			_, err = Initiate(t.Context(), a, &Options{Timeout: 30 * time.Millisecond})
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s, %d octets of a reply: %v", k.name, part, err)
			}
		}
		a, b := k.pair(t)
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
		if _, err := Await(ctx, b, time.Hour); !errors.Is(err, why) {
			t.Errorf("%s: %v", k.name, err)
		}
		if _, err := Initiate(ctx, a, nil); !errors.Is(err, why) && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, ErrLost) {
			t.Errorf("%s: %v", k.name, err)
		}
	}
}

// MPA-012: a reject carries private data, in either revision.
func TestReject(t *testing.T) {
	for _, k := range kinds {
		for _, rev := range []int{1, 2} {
			a, b := k.pair(t)
			done := make(chan error, 1)
			go func() {
				r, err := Await(t.Context(), b, 0)
				if err == nil {
					if ird, ord, ok := r.Reads(); r.Rev() != rev || string(r.Private()) != "please" || ok != (rev == 2) || ok && (ird != 3 || ord != 4) {
						t.Errorf("asked %d, %q, %d, %d, %v", r.Rev(), r.Private(), ird, ord, ok)
					}
					if err := r.Reject(t.Context(), make([]byte, 249)); !errors.Is(err, ErrOption) {
						t.Errorf("rejected with 249 octets: %v", err)
					}
					if _, err := r.Accept(t.Context(), &Options{IRD: -1}); !errors.Is(err, ErrOption) {
						t.Errorf("accepted with IRD -1: %v", err)
					}
					err = r.Reject(t.Context(), []byte("No, thanks"))
				}
				done <- err
			}()
			_, err := Initiate(t.Context(), a, &Options{Rev: rev, IRD: 3, ORD: 4, Private: []byte("please")})
			var rejected *RejectedError
			if !errors.As(err, &rejected) || string(rejected.Private) != "No, thanks" {
				t.Errorf("%s, Rev %d: %v", k.name, rev, err)
			}
			if err := <-done; err != nil {
				t.Errorf("%s: %v", k.name, err)
			}
		}
	}
}

// MPA-008: an end in the middle of a frame is no good end.
func TestLost(t *testing.T) {
	frame := unhex(t, golden[0].wire)
	for _, crc := range []bool{true, false} {
		for n := range frame {
			a, b := unixPair(t)
			_, cb := open(t, a, b, &Options{NoCRC: !crc}, &Options{NoCRC: true})
			a.Write(frame[:n])
			a.Close()
			sink := newSink(t)
			err := receiveAll(cb, sink)
			if n == 0 && err != io.EOF || n > 0 && (!errors.Is(err, ddp.Lost) || !errors.Is(err, io.ErrUnexpectedEOF)) || len(sink.got) != 0 {
				t.Fatalf("CRC %v, %d octets of a frame: %v, %v", crc, n, err, sink.got)
			}
		}
	}
	// An abort is one neither, and ends what waits at both sides.
	a, b := tcpPair(t, 0)
	ca, cb := open(t, a, b, nil, nil)
	mine := make(chan error, 1)
	go func() { mine <- ca.Receive(newSink(t)) }()
	ca.Abort()
	if err := cb.Receive(newSink(t)); !errors.Is(err, ddp.Lost) {
		t.Errorf("after the peer's abort: %v", err)
	}
	if err := <-mine; !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the own abort: %v", err)
	}
	if _, err := ca.Send(&listSource{t: t, list: []ddp.Message{outgoing(send(1, []byte("x")), 0)}}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("sent after the abort: %v", err)
	}
}

// MPA-009: after a fault the rest is dropped, so that the end is good and the peer reads why.
func TestDiscard(t *testing.T) {
	a, b := tcpPair(t, 0)
	_, cb := open(t, a, b, &Options{NoCRC: true}, nil)
	bad := unhex(t, golden[0].wire)
	bad[len(bad)-1]++
	a.Write(append(bad, make([]byte, 300000)...))
	if err := cb.Receive(newSink(t)); err != ddp.Checksum {
		t.Fatalf("%v", err)
	}
	if err := drain(cb, &listSource{t: t, list: []ddp.Message{outgoing(send(1, []byte("why")), 3)}}); err != nil {
		t.Fatal(err)
	}
	cb.CloseWrite()
	go func() {
		io.Copy(io.Discard, a)
		a.CloseWrite()
	}()
	var err error
	for err == nil {
		err = cb.Discard()
	}
	if err != io.EOF {
		t.Errorf("at the end %v", err)
	}
}

// TestKeepAlive checks that TCP's probes to a peer that has nothing to do end in the time that was asked for, in whole seconds, for which
// more than one probe is lost where there is time for it (S6).
func TestKeepAlive(t *testing.T) {
	for ms := 1; ms <= 120_000; ms += 100 {
		within := time.Duration(ms) * time.Millisecond
		idle, interval, count := probes(within)
		all := idle + time.Duration(count)*interval
		if idle < time.Second || interval < time.Second || idle%time.Second != 0 || interval%time.Second != 0 || count < 1 || within > 2*time.Second && count < 2 ||
			all < within || all >= max(within+time.Second, 2*time.Second+1) {
			t.Fatalf("within %v: %v, %d probes in %v: %v", within, idle, count, interval, all)
		}
	}
	a, b := tcpPair(t, 0)
	ca, _ := open(t, a, b, nil, nil)
	ca.KeepAlive(3 * time.Second)
	var got [3]int
	ca.raw.Control(func(fd uintptr) {
		for i, option := range []int{unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT} {
			got[i], _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option)
		}
	})
	if got[0]+got[1]*got[2] != 3 {
		t.Errorf("the system has %d s, and %d s for each of %d probes", got[0], got[1], got[2])
	}
}
