package text_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/endpoint"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// TestEngine: what two endpoints of ours say to each other is named.
func TestEngine(t *testing.T) {
	net := simnet.New(1)
	defer net.Close()
	addrs := []transport.Addr{simnet.Addr(1), simnet.Addr(2)}
	var file bytes.Buffer
	wire, err := tap.New(net.Attach(addrs[0], simnet.Config{}), &file, tap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	memory, err := endpoint.NewRegion(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	a, err := endpoint.New(wire, &endpoint.Config{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	b, err := endpoint.New(net.Attach(addrs[1], simnet.Config{}), &endpoint.Config{ID: 2, Memory: memory, AcceptAny: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c, err := a.Connect(endpoint.Peer{Addr: addrs[1], ID: 2, Size: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := c.Write(ctx, &endpoint.Transaction{
		Segments: []endpoint.Segment{{Addr: 64, Bytes: make([]byte, 5000)}}, Completion: endpoint.Word(8, 9),
	}); err != nil {
		t.Fatal(err)
	}
	a.Close() // and its tap: the file is whole

	lives := map[int]uint32{}
	var writes, stamps, answers int
	r, err := captured.NewFileReader(&file, captured.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var v text.View
	printer := text.Printer{Style: text.JSON}
	for {
		p, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		v.Decode(p)
		o := objectOf(t, string(printer.Append(nil, &v)))
		switch o.Kind {
		case "hello":
			if known, again := lives[*o.Src]; again && known != o.Hello.Life || o.Hello.Life == 0 {
				t.Errorf("endpoint %d has lives %d and %d", *o.Src, known, o.Hello.Life)
			}
			lives[*o.Src] = o.Hello.Life
			if o.Hello.Answer {
				answers++
			}
			if peer := o.Hello.Peer; peer != 0 && peer != lives[*o.Dst] || o.Hello.ID&0xFFFF != uint32(*o.ID) || o.Hello.ID>>16 != uint32(*o.AckStart) {
				t.Errorf("%+v", *o.Hello)
			}
		case "write":
			writes++
			if o.Messages[0].Txn != lives[*o.Src] || *o.Messages[0].CompletionAddr != 8 {
				t.Errorf("first transaction of life %d: %+v", lives[*o.Src], o.Messages)
			}
		case "ack":
			if o.Stamp == nil || o.Stamp.Life != lives[*o.Dst] || o.Stamp.ID&0xFFFF != uint32(*o.ID) || o.Stamp.AckStart&0xFFFF != uint32(*o.AckStart) {
				t.Errorf("frame %d has stamp %+v, lives are %v", *o.ID, o.Stamp, lives)
			} else {
				stamps++
			}
		default:
			t.Errorf("a frame of kind %s", o.Kind)
		}
		if o.Padding != 0 || o.Malformed != nil || o.Cut {
			t.Errorf("%+v", o)
		}
	}
	if len(lives) != 2 || answers == 0 || writes < 4 || stamps == 0 {
		t.Errorf("lives %v, %d answers, %d writes, %d stamps", lives, answers, writes, stamps)
	}
}
