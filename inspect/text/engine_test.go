package text_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/endpoint/session"
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
	memory, err := dgrdma.NewRegion(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	a, err := dgrdma.New(wire, &dgrdma.Config{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	b, err := dgrdma.New(net.Attach(addrs[1], simnet.Config{}), &dgrdma.Config{ID: 2, Memory: memory, AcceptAny: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c, err := a.Connect(dgrdma.Peer{Addr: addrs[1], ID: 2, Size: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := c.Write(ctx, &dgrdma.Transaction{
		Segments: []dgrdma.Segment{{Addr: 64, Bytes: make([]byte, 5000)}}, Completion: dgrdma.Word(8, 9),
	}); err != nil {
		t.Fatal(err)
	}
	a.Close() // and its tap: the file is whole

	epochs := map[int]uint32{}
	counts := map[string]int{}
	ids := map[int]uint32{} // the newest, of data and bells
	var check uint32
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
		counts[o.Kind]++
		if o.Session != nil && o.Kind != "hello" && o.Kind != "welcome" && o.Kind != "confirm" {
			if want := session.Tag(session.Epoch(epochs[*o.Dst]), session.Epoch(epochs[*o.Src])); o.Session.Tag != uint32(want) {
				t.Errorf("a frame of kind %s of endpoint %d has the tag %#x, want %#x: %+v", o.Kind, *o.Src, o.Session.Tag, want, epochs)
			}
			if epochs[*o.Dst]+ids[*o.Dst]-o.Session.UpTo > ids[*o.Dst] {
				t.Errorf("endpoint %d acknowledges up to %d, of %d after %d", *o.Src, o.Session.UpTo, ids[*o.Dst], epochs[*o.Dst])
			}
		}
		switch o.Kind {
		case "hello", "welcome":
			if known, again := epochs[*o.Src]; again && known != o.Session.Sender || o.Session.Sender == 0 {
				t.Errorf("endpoint %d has epochs %d and %d", *o.Src, known, o.Session.Sender)
			}
			epochs[*o.Src] = o.Session.Sender
			if want := map[bool]uint32{true: epochs[*o.Dst]}[o.Kind == "welcome"]; o.Session.Receiver != want {
				t.Errorf("%+v, want epoch %d", *o.Session, want)
			}
			if o.Kind == "welcome" {
				check = o.Session.Check
			}
		case "confirm":
			if o.Session.Sender != epochs[*o.Src] || o.Session.Receiver != epochs[*o.Dst] || o.Session.Check != check || check == 0 {
				t.Errorf("%+v, epochs %v, check %d", *o.Session, epochs, check)
			}
		case "write":
			if ids[*o.Src]++; uint32(*o.ID) != epochs[*o.Src]+ids[*o.Src] || *o.Messages[0].CompletionAddr != 8 || int(o.Messages[0].Index) != counts["write"] {
				t.Errorf("frame %d of epoch %d: %d %+v", ids[*o.Src], epochs[*o.Src], *o.ID, o.Messages)
			}
		case "ack":
			if e := o.Session.Echo; e == nil || e.Copy != 0 || e.ID-epochs[*o.Dst] > ids[*o.Dst] {
				t.Errorf("an ACK says %+v", o.Session)
			}
		case "bye":
			if o.Session.Sender != epochs[*o.Src] || o.Session.Receiver != epochs[*o.Dst] {
				t.Errorf("a BYE says %+v, epochs %v", o.Session, epochs)
			}
		default:
			t.Errorf("a frame of kind %s", o.Kind)
		}
		if o.Padding != 0 || o.Malformed != nil || o.Cut {
			t.Errorf("%+v", o)
		}
	}
	if len(epochs) != 2 || counts["welcome"] == 0 || counts["confirm"] == 0 || counts["write"] != 4 || counts["ack"] == 0 || counts["bye"] == 0 {
		t.Errorf("epochs %v, frames %v", epochs, counts)
	}
}
