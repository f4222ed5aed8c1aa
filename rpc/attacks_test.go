package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/xdr"
)

// TestAttackReplies checks, over a connection, that a call fails whose Reply claims what it was not offered: chunks, segments, handles or
// lengths; that nothing outside of what was offered changes; and that a Reply which withdraws memory of another call ends the connection (P5).
func TestAttackReplies(t *testing.T) {
	const room = 9000
	for _, x := range []struct {
		name string
		bend func(h *rpcrdma.Header)
		lost bool // the connection
		drop bool // the Reply, as one that cannot be decoded
	}{
		{"another chunk", func(h *rpcrdma.Header) { h.Writes = append(h.Writes, h.Writes[0]) }, false, false},
		{"another segment", func(h *rpcrdma.Header) { h.Writes[0] = append(h.Writes[0], h.Writes[0][0]) }, false, false},
		{"another handle", func(h *rpcrdma.Header) { h.Writes[0][0].Handle++ }, false, false},
		{"another offset", func(h *rpcrdma.Header) { h.Writes[0][0].Offset += 8 }, false, false},
		{"one octet more", func(h *rpcrdma.Header) { h.Writes[0][0].Length = room + 1 }, false, false},
		{"2^32-1 octets", func(h *rpcrdma.Header) { h.Writes[0][0].Length = 1<<32 - 1 }, false, false},
		{"no chunk", func(h *rpcrdma.Header) { h.Writes = nil }, false, false},
		{"a Reply chunk", func(h *rpcrdma.Header) { h.HasReply, h.Reply = true, h.Writes[0] }, false, false},
		{"NOMSG without one", func(h *rpcrdma.Header) { h.Type = rpcrdma.TypeNoMsg }, false, true},
		{"a Read list", func(h *rpcrdma.Header) {
			h.Reads = []rpcrdma.ReadChunk{{Position: 40, Segments: h.Writes[0]}}
		}, false, true},
		{"the memory of another call", nil, true, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			bothByHand(t, func(t *testing.T, version uint32, o *ClientOptions) {
				o.NoReconnect = true
				var other uint32 // handle of the first call, which is not answered
				address := serveReplies(t, version, func(p *handPeer, h rpcrdma.Header, _ []byte) {
					if len(h.Writes) == 0 {
						p.send(rpcrdma.Header{XID: h.XID, Flags: p.flags()}, replyTo(h.XID, nil))
						return
					}
					reply := rpcrdma.Header{XID: h.XID, Flags: p.flags(), Writes: []rpcrdma.Chunk{bytesOf(h.Writes[0])}, Version: version, Credit: p.credit}
					if x.bend != nil {
						x.bend(&reply)
					} else if other == 0 {
						other = h.Writes[0][0].Handle
						return
					}
					message := replyTo(h.XID, &data{b: make([]byte, 900)})
					if reply.Type == rpcrdma.TypeNoMsg {
						message = nil
					}
					work := verbs.Work{Op: verbs.OpSend, Data: append(reply.Append(nil), message...)}
					if x.lost {
						work.Invalidating, work.Invalidate = true, other
					}
					p.qp.Post(&work)
				})
				c := dial(t, address, o)
				b := c.Bind(testProgram, None)
				if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
					t.Fatal(err)
				}
				if x.lost {
					first := make(chan error, 1)
					go func() {
						first <- b.Call(t.Context(), procEcho, &data{}, &data{}, &CallOptions{Into: make([]byte, room)})
					}()
					defer func() {
						if err := <-first; !errors.Is(err, ErrLost) {
							t.Errorf("the other call: %v", err)
						}
					}()
					time.Sleep(20 * time.Millisecond) // its order is not needed: the second one then waits for an answer
				}
				memory := bytes.Repeat([]byte{0xEE}, room+64)
				want := bytes.Clone(memory)
				limit := time.Minute
				if x.drop { // then no answer comes
					limit = 300 * time.Millisecond
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				err := b.Call(ctx, procEcho, &data{}, &data{}, &CallOptions{Into: memory[32 : 32+room]})
				if is := map[bool]error{false: rpcrdma.ErrReply, true: ErrLost}[x.lost]; !errors.Is(err, is) && !(x.drop && errors.Is(err, context.DeadlineExceeded)) {
					t.Errorf("%v, want %v", err, is)
				}
				if !bytes.Equal(memory, want) {
					t.Error("memory has changed")
				}
				if err := b.Call(t.Context(), 0, nil, nil, nil); (err == nil) == x.lost {
					t.Errorf("afterwards: %v", err)
				}
			})
		})
	}
}

// bytesOf returns a chunk whose memory is not the Decoder's.
func bytesOf(c rpcrdma.Chunk) rpcrdma.Chunk { return append(rpcrdma.Chunk(nil), c...) }

// TestAttackLentMemory checks, over a connection, that a server which writes into memory of a client after the Reply, with a guessed handle, or over
// the connection of another client loses that connection, and changes nothing (P8).
func TestAttackLentMemory(t *testing.T) {
	for _, attack := range []string{"withdrawn", "guessed", "of another connection"} {
		t.Run(attack, func(t *testing.T) {
			bothByHand(t, func(t *testing.T, version uint32, o *ClientOptions) {
				const room = 9000
				o.NoReconnect, o.Host = true, openHost(t)
				var mu sync.Mutex
				var victim verbs.Key
				hold, held := make(chan struct{}), make(chan struct{}, 1)
				address := serveReplies(t, version, func(p *handPeer, h rpcrdma.Header, message []byte) {
					reply := rpcrdma.Header{XID: h.XID, Flags: p.flags()}
					if len(h.Writes) == 0 {
						mu.Lock()
						key := victim
						mu.Unlock()
						if attack == "guessed" {
							key.STag ^= 0x5a5a5a5a
						}
						p.qp.Write(context.Background(), key, 0, bytes.Repeat([]byte{0x66}, 100))
						p.send(reply, replyTo(h.XID, nil))
						return
					}
					to := h.Writes[0][0]
					mu.Lock()
					victim = verbs.Key{STag: to.Handle, Offset: to.Offset, Length: to.Length}
					mu.Unlock()
					if attack == "of another connection" {
						held <- struct{}{}
						<-hold
					}
					to.Length = 0
					reply.Writes = []rpcrdma.Chunk{{to}}
					p.send(reply, replyTo(h.XID, &data{}))
				})
				b := dial(t, address, o).Bind(testProgram, None)
				memory := bytes.Repeat([]byte{0xEE}, room)
				want := bytes.Clone(memory)
				call := make(chan error, 1)
				go func() {
					call <- b.Call(t.Context(), procEcho, &data{}, &data{}, &CallOptions{Into: memory, Direct: true})
				}()
				attacked := b
				if attack == "of another connection" {
					<-held
					attacked = dial(t, address, o).Bind(testProgram, None)
				} else if err := <-call; err != nil {
					t.Fatal(err)
				}
				if err := attacked.Call(t.Context(), procSleep, num(1), nil, nil); !errors.Is(err, ErrLost) && !errors.Is(err, ErrEnded) {
					t.Errorf("over the connection of the attack: %v", err)
				}
				close(hold)
				if attack == "of another connection" {
					if err := <-call; err != nil {
						t.Errorf("over the other connection: %v", err)
					}
				}
				if !bytes.Equal(memory, want) {
					t.Error("memory has changed")
				}
			})
		})
	}
}

// TestAttackSlowReads checks that a client whose calls fill its window, and which answers none of the server's Reads, loses its connection, gets back
// no memory before, and delays no other client (P9).
func TestAttackSlowReads(t *testing.T) {
	s, address := serveRDMA(t, &service{}, nil)
	s.partTime = 2 * time.Second // in which a busy machine posts all calls
	s.budget.left = 80 << 20     // more than the window takes: budgets have their own test
	b := dial(t, address, nil).Bind(testProgram, None)
	if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	p := dialDeaf(t, address)
	p.echo(1, 1<<20)
	waitFor(t, "calls hold memory", func() bool { left, _ := s.budget.state(); return left < 80<<20 })
	for xid := range uint32(60) {
		p.echo(2+xid, 1<<20)
	}
	in, out := data{b: make([]byte, 40000)}, data{}
	for range 50 {
		if err := b.Call(t.Context(), procEcho, &in, &out, &CallOptions{Into: make([]byte, 40000)}); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the connection ends", func() bool { return s.Stats().Connections == 1 })
	waitFor(t, "all memory is back", func() bool { left, _ := s.budget.state(); return left == 80<<20 })
}

// TestAttackWholeBudget checks that clients of one host whose calls want more memory than the server has for items, and which answer none of the server's Reads, delay no
// client of another host, with the usual memory (P9).
func TestAttackWholeBudget(t *testing.T) {
	s, address := serveRDMA(t, &service{}, nil)
	whole := s.budget.left
	calls := func() int {
		left, waiting := s.budget.state()
		return (whole-left)>>20 + waiting
	}
	for i := range 2 {
		p := dialDeaf(t, address)
		p.echo(1, 1<<20)
		waitSettled(t, s, i+1)
		for xid := range uint32(60) {
			p.echo(2+xid, 1<<20)
		}
	}
	waitFor(t, "all calls hold memory, or wait", func() bool { return calls() == 2*61 })
	host, err := verbs.Open("tcp:127.0.0.2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	b := dial(t, address, &ClientOptions{Host: host}).Bind(testProgram, None)
	ctx, cancel := context.WithTimeout(t.Context(), partTime*4/5) // then the server gives the others up
	defer cancel()
	for _, n := range []int{40000, 1 << 20} {
		in, out := data{b: make([]byte, n)}, data{}
		if err := b.Call(ctx, procEcho, &in, &out, &CallOptions{Into: make([]byte, n)}); err != nil || len(out.b) != n {
			t.Error(err)
		}
	}
	if left, waiting := s.budget.state(); waiting == 0 || left == whole {
		t.Errorf("%d octets are left, %d calls wait: the server has given the others up", left, waiting)
	}
}

// TestAttackReplay checks that a call which comes again over another connection of the same host is answered as before, with a header of its own
// connection, while one with the same XID and other arguments, or of another host, is carried out (P13, RPC1-054).
func TestAttackReplay(t *testing.T) {
	h := &service{}
	_, address := serveRDMA(t, h, nil)
	host, err := verbs.Open("tcp:127.0.0.2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	for _, version := range []uint32{rpcrdma.Version1, rpcrdma.Version2} {
		h.mu.Lock()
		h.sum = 0
		h.mu.Unlock()
		xid := 1000 * version
		for i, x := range []struct {
			host *verbs.Host
			add  int
			want number
		}{{nil, 5, 5}, {nil, 5, 5}, {nil, 6, 11}, {nil, 5, 5}, {host, 5, 16}, {nil, 6, 11}} {
			p := dialHandFrom(t, x.host, address, 8)
			p.settle(version)
			p.call(rpcrdma.Header{XID: xid}, procAdd, num(x.add))
			got, message, ok := p.reply()
			if want := replyTo(xid, &x.want); !ok || got.XID != xid || got.Version != version || got.Credit == 0 || !bytes.Equal(message, want) {
				t.Errorf("version %d, call %d: %+v, %x, want %x", version, i, got, message, want)
			}
			p.qp.Abort()
		}
	}
}

// TestAttackRepliesNotTaken checks that clients of one host which call for as much data as they may over many connections, and take no reply, have the server hold no more than its
// memory for replies; that clients of another host are served in that time; and that all memory is back at the end (P19).
func TestAttackRepliesNotTaken(t *testing.T) {
	const connections, calls, n = 8, 60, 1 << 20
	for _, transport := range []string{"tcp", "rdma"} {
		t.Run(transport, func(t *testing.T) {
			h := &service{}
			serveBy := serve
			if transport == "rdma" {
				serveBy = func(t testing.TB, h Handler, o *ServerOptions, also ...*Program) (*Server, string) {
					return serveRDMA(t, h, o, also...)
				}
			}
			var held, most atomic.Int64
			s, address := serveBy(t, HandlerFunc(func(ctx context.Context, c *Call) error {
				if now := held.Add(n); now > most.Load() {
					most.Store(now)
				}
				c.Sent(func() { held.Add(-n) })
				return h.ServeRPC(ctx, c)
			}), nil)
			whole := s.replies.left
			var end []func()
			for i := range connections {
				if transport == "tcp" {
					nc, err := net.Dial("tcp", address[len("tcp:"):])
					if err != nil {
						t.Fatal(err)
					}
					end = append(end, func() { nc.Close() })
					for xid := range uint32(calls) {
						m := callOf(1+xid, procRead, num(n))
						nc.Write(append(binary.BigEndian.AppendUint32(nil, markLast|uint32(len(m))), m...))
					}
					continue
				}
				p := dialDeaf(t, address)
				end = append(end, p.qp.Abort)
				for xid := range uint32(calls) {
					p.send(1+xid, procRead, rpcrdma.Header{Writes: []rpcrdma.Chunk{{{Handle: 1, Length: n}}}}, func(e *xdr.Encoder) { e.Uint32(n) })
					if xid == 0 {
						waitSettled(t, s, i+1)
					}
				}
			}
			waitFor(t, "calls wait", s.replies.waits)
			options := &ClientOptions{Dial: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}
			if transport == "rdma" {
				host, err := verbs.Open("tcp:127.0.0.2")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { host.Close() })
				options.Host = host
			}
			b := dial(t, address, options).Bind(testProgram, None)
			for range 3 {
				var out data
				if err := b.Call(t.Context(), procRead, num(n), &out, &CallOptions{Into: make([]byte, n)}); err != nil || len(out.b) != n {
					t.Fatal(err)
				}
			}
			if !s.replies.waits() {
				t.Error("the server has given the others up")
			}
			if got := most.Load(); got > int64(whole)*3/4 {
				t.Errorf("%d MiB were held", got>>20)
			}
			for _, f := range end {
				f()
			}
			waitFor(t, "all memory is back", func() bool { left, _ := s.replies.state(); return left == whole && held.Load() == 0 })
		})
	}
}

// TestAttackTakesNothing checks that a client over RDMA which calls for data and takes none of it loses its connection, and the server has all memory back (P19).
func TestAttackTakesNothing(t *testing.T) {
	s, address := serveRDMA(t, &service{}, nil)
	s.takeTime = 500 * time.Millisecond
	whole := s.replies.left
	p := dialDeaf(t, address)
	const n = 1 << 20
	for xid := range uint32(60) {
		p.send(1+xid, procRead, rpcrdma.Header{Writes: []rpcrdma.Chunk{{{Handle: 1, Length: n}}}}, func(e *xdr.Encoder) { e.Uint32(n) })
		if xid == 0 {
			waitSettled(t, s, 1)
		}
	}
	waitFor(t, "the connection ends", func() bool { return s.Stats().Connections == 0 })
	waitFor(t, "all memory is back", func() bool { left, _ := s.replies.state(); return left == whole })
}

// waits reports whether a share of the budget waits.
func (b *budget) waits() bool {
	_, waiting := b.state()
	return waiting > 0
}

// waitSettled waits until n connections of a server over RDMA have settled their versions and have posted receives for the whole window. One
// that is being set up has no machine yet.
func waitSettled(t *testing.T, s *Server, n int) {
	t.Helper()
	var settled []*rdmaServer
	waitFor(t, "all connections settle a version", func() bool {
		settled = settled[:0]
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.conns {
			if c := c.(*rdmaServer); c.version.Load() != 0 {
				settled = append(settled, c)
			}
		}
		return len(settled) == n
	})
	for _, c := range settled {
		c.terms() // the turn in which it posts them is over
	}
}

// TestAttackReplyOfAnotherUser checks that a call is not answered by what another user of the same host was told, who has made the same call with its XID before; and
// that the same user's call is, also if its credential has another stamp by then.
func TestAttackReplyOfAnotherUser(t *testing.T) {
	h := &service{}
	_, address := serveRDMA(t, h, nil)
	user := func(uid, stamp uint32) Auth { return (&Sys{UID: uid, GID: 7, Stamp: stamp}).Auth() }
	for _, version := range []uint32{rpcrdma.Version1, rpcrdma.Version2} {
		h.mu.Lock()
		h.sum = 0
		h.mu.Unlock()
		xid := 1000 * version
		for i, x := range []struct {
			by   Auth
			want number
		}{{user(1, 0), 5}, {user(2, 0), 10}, {None, 15}, {user(1, 99), 5}, {user(2, 0), 10}, {None, 15}} {
			p := dialHand(t, address, 8)
			p.settle(version)
			var e xdr.Encoder
			call := callHeader{xid: xid, program: testProgram.Number, version: testProgram.Version, procedure: procAdd, credential: x.by}
			call.append(&e)
			num(5).MarshalXDR(&e)
			p.send(rpcrdma.Header{XID: xid}, e.Bytes())
			if _, message, ok := p.reply(); !ok || !bytes.Equal(message, replyTo(xid, &x.want)) {
				t.Errorf("version %d, call %d: %x, want %x", version, i, message, replyTo(xid, &x.want))
			}
			p.qp.Abort()
		}
	}
}

// TestAttackSilence checks that connections which say nothing, or no more than half a Call in parts, end in time, and that others are served (P16, P7).
func TestAttackSilence(t *testing.T) {
	s, address := serveRDMA(t, &service{}, nil)
	s.partTime = 2 * time.Second // in which a busy machine says something over each connection
	var peers []*handPeer
	for i := range 40 {
		p := dialHand(t, address, 8)
		if i%2 == 0 {
			p.settle(rpcrdma.Version2)
			p.send(rpcrdma.Header{XID: 7, Flags: rpcrdma.FlagMore}, callOf(7, procEcho, nil))
		}
		peers = append(peers, p)
	}
	b := dial(t, address, nil).Bind(testProgram, None)
	if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	for i, p := range peers {
		p.ended(fmt.Sprintf("connection %d", i))
	}
	if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
		t.Error(err)
	}
}

// TestAttackStrayMessages checks that a client drops and counts Replies and ERRORs to no call, drops calls of the server that it takes none of, and
// ends a connection whose server makes more calls than it was granted (P17, RPC1-064, RPC2-111, RPC2-114).
func TestAttackStrayMessages(t *testing.T) {
	bothByHand(t, func(t *testing.T, version uint32, o *ClientOptions) {
		const strays = 12
		h := &service{hold: make(chan struct{}), entered: make(chan struct{}, 100)}
		flood := func(p *handPeer, h rpcrdma.Header, _ []byte) {
			for i := range uint32(144) {
				p.call(rpcrdma.Header{XID: 1000 + i}, procAdd, num(1))
			}
			p.send(rpcrdma.Header{XID: h.XID, Flags: p.flags()}, replyTo(h.XID, nil))
		}
		attack := func(p *handPeer, h rpcrdma.Header, _ []byte) {
			for i := range uint32(strays) {
				switch {
				case i < 4:
					p.call(rpcrdma.Header{XID: 1000 + i}, procAdd, num(1))
				case i%2 == 0:
					p.send(rpcrdma.Header{XID: 1000 + i, Flags: p.flags()}, replyTo(1000+i, num(1)))
				default:
					p.send(rpcrdma.Header{XID: 1000 + i, Type: rpcrdma.TypeError, Flags: p.flags(), Report: rpcrdma.Report{Code: shapedCode(version)}}, nil)
				}
			}
			p.send(rpcrdma.Header{XID: h.XID, Flags: p.flags()}, replyTo(h.XID, nil))
		}
		c := dial(t, serveReplies(t, version, attack), o)
		b := c.Bind(testProgram, None)
		if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		if n := c.Stats(); n.Connections != 1 || n.Unmatched != strays-4 {
			t.Errorf("counted %+v", n)
		}
		callbacks := testServer(h, &ServerOptions{Credits: 4})
		o.Callbacks, o.NoReconnect = callbacks, true
		c = dial(t, serveReplies(t, version, flood), o)
		if err := c.Bind(testProgram, None).Call(t.Context(), 0, nil, nil, nil); !errors.Is(err, rpcrdma.ErrProtocol) && !errors.Is(err, ErrLost) {
			t.Errorf("the server has made too many calls: %v", err)
		}
		close(h.hold)
		c.Close()
		callbacks.Close()
		if n := callbacks.Stats().Calls; n > 64 {
			t.Errorf("%d calls were taken", n)
		}
	})
}

// shapedCode returns an error of a version.
func shapedCode(version uint32) rpcrdma.ErrorCode {
	if version == rpcrdma.Version1 {
		return rpcrdma.CodeChunk
	}
	return rpcrdma.CodeSystem
}
