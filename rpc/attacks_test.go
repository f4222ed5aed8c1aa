package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/verbs"
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
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
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
	s.partTime = 500 * time.Millisecond
	s.budget.left = 80 << 20 // more than the window takes: budgets have their own test
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

// TestAttackSilence checks that connections which say nothing, or no more than half a Call in parts, end in time, and that others are served (P16, P7).
func TestAttackSilence(t *testing.T) {
	s, address := serveRDMA(t, &service{}, nil)
	s.partTime = 300 * time.Millisecond
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
