package rpc

import (
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/xdr"
)

// TestIntoIsRoom checks that an item which is longer than MaxReply fits into an Into of its length, over TCP and both versions of RPC-over-RDMA; that
// one that does not fit is ErrTooLong, whose remedy is the one that helps; and that it does.
func TestIntoIsRoom(t *testing.T) {
	const long = 3 << 20
	for name, versions := range map[string]Versions{"tcp": 0, "rdma v1": V1, "rdma v2": V2} {
		t.Run(name, func(t *testing.T) {
			_, address := serve(t, &service{}, nil)
			if versions != 0 {
				_, address = serveRDMA(t, &service{}, &ServerOptions{Versions: versions})
			}
			read := func(maxReply, into int) error {
				t.Helper()
				b := dial(t, address, &ClientOptions{Versions: versions, MaxReply: maxReply}).Bind(testProgram, None)
				var got data
				o := new(CallOptions)
				if into > 0 {
					o.Into = make([]byte, into)
				}
				err := b.Call(t.Context(), procRead, num(long), &got, o)
				if err == nil && (len(got.b) != long || got.b[long-1] != 255 || into > 0 && &got.b[0] != &o.Into[0]) {
					t.Errorf("MaxReply %d, Into %d: got %d octets", maxReply, into, len(got.b))
				}
				if err := b.Call(t.Context(), procRead, num(5), &data{}, o); err != nil {
					t.Errorf("MaxReply %d, Into %d: the next call: %v", maxReply, into, err)
				}
				return err
			}
			for _, room := range [][2]int{{0, long}, {0, long + 1}, {long + 1000, 0}} {
				if err := read(room[0], room[1]); err != nil {
					t.Errorf("MaxReply %d, Into %d: %v", room[0], room[1], err)
				}
			}
			for _, x := range []struct {
				into    int
				helps   string
				useless string
			}{{0, "raise ClientOptions.MaxReply", "MaxResults"}, {1000, "give a longer Into", "raise ClientOptions.MaxReply"}, {long - 1, "give a longer Into", "raise ClientOptions.MaxReply"}} {
				err := read(0, x.into)
				if !errors.Is(err, ErrTooLong) || !strings.Contains(err.Error(), x.helps) || strings.Contains(err.Error(), x.useless) {
					t.Errorf("Into %d: %v", x.into, err)
				}
			}
		})
	}
}

// TestIntoIsRoomForFragments checks that a reply in several fragments, of a call with Into, has the room of Into as well, wherever the fragments are
// cut; and that one which has more is skipped without what it says that it needs.
func TestIntoIsRoomForFragments(t *testing.T) {
	const limit, item = 1000, 70000
	for _, cut := range []int{1, 7, 8, 9, 24, limit - 1, limit, limit + 1, item} {
		here, there := net.Pipe()
		c := NewClient(here, &ClientOptions{MaxReply: limit})
		go func() {
			defer there.Close()
			for n := item; ; n++ {
				r := records{limit: 1 << 10}
				var call record
				for ok := false; !ok; call, ok, _ = r.next() {
					n, err := there.Read(r.space())
					if err != nil {
						return
					}
					r.received(n)
				}
				results := &data{b: make([]byte, item)}
				if n > item { // the second one
					results.b = make([]byte, item+limit+4)
				}
				var e xdr.Encoder
				results.MarshalXDR(&e)
				reply := append(binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(call.b)), 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
				reply = xdr.AppendFlat(reply, e.Bytes(), e.Items())
				b := binary.BigEndian.AppendUint32(nil, uint32(cut))
				b = binary.BigEndian.AppendUint32(append(b, reply[:cut]...), uint32(len(reply)-cut)|markLast)
				there.Write(append(b, reply[cut:]...))
			}
		}()
		var got data
		b := c.Bind(testProgram, None)
		if err := b.Call(t.Context(), procRead, num(item), &got, &CallOptions{Into: make([]byte, item)}); err != nil || len(got.b) != item {
			t.Errorf("cut at %d: %d octets, %v", cut, len(got.b), err)
		}
		if err := b.Call(t.Context(), procRead, num(item), &got, &CallOptions{Into: make([]byte, item)}); !errors.Is(err, ErrTooLong) {
			t.Errorf("cut at %d: %v", cut, err)
		}
		c.Close()
	}
}
