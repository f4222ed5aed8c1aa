package rpc

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/xdr"
)

// TestReliableConnectionsOnly checks that RPC goes over what is reliable and in order, and nothing else: TCP, and RDMA over it (RPC2-010).
func TestReliableConnectionsOnly(t *testing.T) {
	for _, network := range []string{"udp", "ether", "rdma-udp", "rdma+udp", "unix", ""} {
		if c, err := Dial(t.Context(), network+":127.0.0.1:1", nil); err == nil || !strings.Contains(err.Error(), "tcp:") {
			t.Errorf("%q: %v, %v", network, c, err)
		}
	}
	address := serveReplies(t, rpcrdma.Version1, func(p *handPeer, h rpcrdma.Header, message []byte) {
		if _, ok := p.address().(*net.TCPAddr); !ok {
			t.Errorf("RDMA is over %T", p.address())
		}
		p.send(rpcrdma.Header{XID: h.XID}, replyTo(h.XID, nil))
	})
	if err := dial(t, address, &ClientOptions{Versions: V1}).Bind(testProgram, None).Call(t.Context(), 0, nil, nil, nil); err != nil {
		t.Error(err)
	}
}

// perhaps is an item that may be absent.
type perhaps struct {
	is bool
	data
}

func (v *perhaps) MarshalXDR(e *xdr.Encoder) {
	e.Bool(v.is)
	if v.is {
		v.data.MarshalXDR(e)
	}
}

func (v *perhaps) UnmarshalXDR(d *xdr.Decoder) {
	if v.is = d.Bool(); v.is {
		v.data.UnmarshalXDR(d)
	}
}

// reduced returns a message of a call or reply without its items, which a test cuts out of it.
func reduced(message []byte, n, tail int) []byte {
	return append(bytes.Clone(message[:len(message)-tail-xdr.Padded(n)]), message[len(message)-tail:]...)
}

// afterItem is how many octets follow the item of data{after: "after"}.
const afterItem = 12

// TestItemsMoveWhole checks what travels by itself in calls and results: the octets of an item, all of them and without the roundup. Its count, the
// word that says whether it is there, and all else stay in the message, so does the credential, whatever its flavor and length
// (RPC2-032, RPC2-033, RPC2-034, RPC2-097).
func TestItemsMoveWhole(t *testing.T) {
	const n = 9001
	gss := Auth{Flavor: 6, Body: bytes.Repeat([]byte{9}, 400)}
	item, other := bytes.Repeat([]byte{1, 2, 3, 4, 5}, n/5+1)[:n], bytes.Repeat([]byte{7}, n)
	bothByHand(t, func(t *testing.T, version uint32, o *ClientOptions) {
		results := &perhaps{true, data{3, other, "after"}}
		address := serveReplies(t, version, func(p *handPeer, h rpcrdma.Header, message []byte) {
			if len(h.Writes) == 0 { // the item is absent
				if len(h.Reads) > 0 {
					t.Error("an absent item has a Read chunk")
				}
				p.send(rpcrdma.Header{XID: h.XID, Flags: p.flags()}, replyTo(h.XID, &perhaps{}))
				return
			}
			want := reduced(gssCall(h.XID, gss, &perhaps{true, data{7, item, "after"}}), n, afterItem)
			if position := uint32(len(want) - afterItem); len(h.Reads) != 1 || h.Reads[0].Position != position || h.Reads[0].Segments.Length() != n || !bytes.Equal(message, want) {
				t.Errorf("Read chunks %v, want one of %d at %d; message\n%x, want\n%x", h.Reads, n, position, message, want)
			}
			fetched := make([]byte, n)
			from := h.Reads[0].Segments[0]
			if err := p.qp.Read(t.Context(), fetched, verbs.Key{STag: from.Handle, Offset: from.Offset, Length: n}, 0); err != nil || !bytes.Equal(fetched, item) {
				t.Errorf("the Read chunk has something else: %v", err)
			}
			to := h.Writes[0][0]
			if err := p.qp.Write(t.Context(), verbs.Key{STag: to.Handle, Offset: to.Offset, Length: to.Length}, 0, other); err != nil {
				t.Error(err)
			}
			to.Length = n
			reply := rpcrdma.Header{XID: h.XID, Flags: p.flags(), Writes: []rpcrdma.Chunk{{to}}}
			p.send(reply, reduced(replyTo(h.XID, results), n, afterItem))
		})
		b := dial(t, address, o).Bind(testProgram, gss)
		var got perhaps
		if err := b.Call(t.Context(), procEcho, &perhaps{}, &got, nil); err != nil || got.is {
			t.Errorf("%+v, %v", got, err)
		}
		if err := b.Call(t.Context(), procEcho, &perhaps{true, data{7, item, "after"}}, &got, &CallOptions{Into: make([]byte, n)}); err != nil {
			t.Fatal(err)
		}
		if !got.is || got.before != 3 || got.after != "after" || !bytes.Equal(got.b, other) {
			t.Errorf("the results are others")
		}
	})
}

// gssCall returns an ECHO with a credential.
func gssCall(xid uint32, a Auth, args xdr.Marshaler) []byte {
	var e xdr.Encoder
	h := callHeader{xid: xid, program: testProgram.Number, version: testProgram.Version, procedure: procEcho, credential: a}
	h.append(&e)
	args.MarshalXDR(&e)
	return xdr.AppendFlat(nil, e.Bytes(), e.Items())
}

// opaque is octets that no table lets travel by themselves.
type opaque []byte

func (v *opaque) MarshalXDR(e *xdr.Encoder)   { e.Opaque(*v) }
func (v *opaque) UnmarshalXDR(d *xdr.Decoder) { *v = d.Opaque(1 << 20) }

// TestProtectedArguments checks that arguments which a program has wrapped, as RPCSEC_GSS with integrity or privacy does, are not reduced: they go in
// parts, or with the whole message; and that no server takes a credential that was reduced (RPC2-097, RPC2-029).
func TestProtectedArguments(t *testing.T) {
	wrapped := opaque(bytes.Repeat([]byte{5}, 9000))
	gss := Auth{Flavor: 6, Body: bytes.Repeat([]byte{9}, 400)}
	bothByHand(t, func(t *testing.T, version uint32, o *ClientOptions) {
		address := serveReplies(t, version, func(p *handPeer, h rpcrdma.Header, _ []byte) {
			for _, r := range h.Reads {
				if r.Position != 0 {
					t.Errorf("a Read chunk at %d", r.Position)
				}
			}
			if h.Flags&rpcrdma.FlagMore == 0 {
				p.send(rpcrdma.Header{XID: h.XID, Flags: p.flags()}, replyTo(h.XID, nil))
			}
		})
		if err := dial(t, address, o).Bind(testProgram, gss).Call(t.Context(), procEcho, &wrapped, nil, nil); err != nil {
			t.Error(err)
		}
		h := &service{}
		s, address := serveRDMA(t, h, &ServerOptions{Auth: func(*Call) error { return nil }})
		p := dialHand(t, address, 8)
		p.settle(version)
		body, err := p.host.Domain().Register(gss.Body, verbs.RemoteRead, &verbs.RegionOptions{Only: p.qp.Stream()})
		if err != nil {
			t.Fatal(err)
		}
		message := gssCall(9, gss, &data{})
		const position = 32 // of the body
		p.send(rpcrdma.Header{XID: 9, Reads: []rpcrdma.ReadChunk{{Position: position, Segments: rpcrdma.Chunk{{Handle: body.STag(), Length: 400}}}}},
			append(bytes.Clone(message[:position]), message[position+400:]...))
		got, answer, _ := p.reply()
		var denied replyHeader
		var d xdr.Decoder
		d.Reset(answer, nil)
		if err := denied.take(&d); got.Type != rpcrdma.TypeError && (err != nil || denied.status != statusAuth) {
			t.Errorf("answered by %v, %x", got.Type, answer)
		}
		if n := s.Stats(); n.Denied+n.Malformed > 1 || n.Connections != 1 {
			t.Errorf("counted %+v", n)
		}
	})
}

// TestOfferedMemoryIsUsed checks that a call fails, for good, whose server returns an item in the message although there was memory for it, or places
// something that is no such item; one that is empty needs none. The connection goes on (RPC2-043).
func TestOfferedMemoryIsUsed(t *testing.T) {
	for _, x := range []struct {
		name    string
		placed  int // octets in the Write chunk
		results xdr.Marshaler
		fails   bool
	}{
		{"in the message", 0, &data{b: make([]byte, 900), after: "after"}, true},
		{"empty", 0, &data{after: "after"}, false},
		{"in both", 900, &data{b: bytes.Repeat([]byte{255}, 900), after: "after"}, true},
		{"another length", 896, &data{b: make([]byte, 900), after: "after"}, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			bothByHand(t, func(t *testing.T, version uint32, o *ClientOptions) {
				address := serveReplies(t, version, func(p *handPeer, h rpcrdma.Header, _ []byte) {
					reply := rpcrdma.Header{XID: h.XID, Flags: p.flags()}
					if len(h.Writes) == 0 {
						p.send(reply, replyTo(h.XID, nil))
						return
					}
					to := h.Writes[0][0]
					if x.placed > 0 {
						p.qp.Write(t.Context(), verbs.Key{STag: to.Handle, Offset: to.Offset, Length: to.Length}, 0, make([]byte, x.placed))
					}
					to.Length = uint32(x.placed)
					reply.Writes = []rpcrdma.Chunk{{to}}
					p.send(reply, replyTo(h.XID, x.results))
				})
				c := dial(t, address, o)
				b := c.Bind(testProgram, None)
				var got data
				err := b.Call(t.Context(), procEcho, &data{}, &got, &CallOptions{Into: make([]byte, 9000)})
				if x.fails != errors.Is(err, xdr.ErrInvalid) || !x.fails && err != nil {
					t.Errorf("%v", err)
				}
				if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil || c.Stats().Connections != 1 {
					t.Errorf("later: %v", err)
				}
			})
		})
	}
}
