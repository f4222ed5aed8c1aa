package text_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// sealedPackets are a handshake and some sealed frames, all of whose random bytes are others each time.
func sealedPackets(t testing.TB) (all []captured.Packet) {
	r := capturetest.Sealed(t, 1, 2)
	for i, b := range [][]byte{
		r.Question, r.Challenge, r.First, r.Second, r.Unasked, r.There(seal.Salt{1, 2, 3, 4, 5, 6, 7}, 100), r.Back(seal.Salt{7, 6, 5, 4, 3, 2, 1}, 10),
	} {
		p := captured.Packet{Packet: capture.Packet{Record: i + 1, Time: time.Unix(1e9, int64(i)), Data: b, Length: len(b)}}
		p.Src.MAC, p.Dst.MAC = [6]byte{2, 0, 0, 0, 0, 1}, [6]byte{2, 0, 0, 0, 0, 2}
		if b[2] == 2 {
			p.Src, p.Dst = p.Dst, p.Src
		}
		all = append(all, p)
	}
	return all
}

// TestSealedLines: what can be read without a key, whole and cut.
func TestSealedLines(t *testing.T) {
	packets := sealedPackets(t)
	nonce := hex.EncodeToString(packets[0].Data[10:18])
	for i, want := range []struct{ line, fields, json string }{
		{
			"1->2 handshake question [nonce NONCE]", "handshake: question from endpoint 1 to endpoint 2, flags 0xc0, nonce NONCE",
			`"kind":"handshake","src":1,"dst":2,"flags":192,"handshake":{"is":"question","nonce":"NONCE"},"messages":[]`,
		},
		{
			"2->1 handshake challenge [nonce NONCE]", "handshake: challenge from endpoint 2 to endpoint 1, flags 0xc2, nonce NONCE, answers a question",
			`"kind":"handshake","src":2,"dst":1,"flags":194,"handshake":{"is":"challenge","nonce":"NONCE","unasked":false},"messages":[]`,
		},
		{
			"1->2 handshake first [nonce NONCE]", "handshake: first from endpoint 1 to endpoint 2, flags 0xc4, nonce NONCE",
			`"kind":"handshake","src":1,"dst":2,"flags":196,"handshake":{"is":"first","nonce":"NONCE"},"messages":[]`,
		},
		{
			"2->1 handshake second [nonce NONCE]", "handshake: second from endpoint 2 to endpoint 1, flags 0xc6, nonce NONCE",
			`"kind":"handshake","src":2,"dst":1,"flags":198,"handshake":{"is":"second","nonce":"NONCE"},"messages":[]`,
		},
		{
			"2->1 handshake challenge [of who does not know the key]",
			"handshake: challenge from endpoint 2 to endpoint 1, flags 0xc2, nonce 0000000000000000, answers a sealed frame, of which it does not know the key",
			`"kind":"handshake","src":2,"dst":1,"flags":194,"handshake":{"is":"challenge","nonce":"0000000000000000","unasked":true},"messages":[]`,
		},
		{
			"1->2 sealed 1 key 5 [100 bytes]",
			"sealed frame from endpoint 1 to endpoint 2, counter 1, key 5, flags 0x8a, salt 01020304050607, 100 bytes, which nobody can read who has not their key",
			`"kind":"sealed","src":1,"dst":2,"flags":138,"sealed":{"counter":1,"key":5,"salt":"01020304050607","length":100},"messages":[]`,
		},
		{
			"2->1 sealed 0 key 3 [17 bytes]",
			"sealed frame from endpoint 2 to endpoint 1, counter 0, key 3, flags 0x86, salt 07060504030201, 17 bytes, which nobody can read who has not their key",
			`"kind":"sealed","src":2,"dst":1,"flags":134,"sealed":{"counter":0,"key":3,"salt":"07060504030201","length":17},"messages":[]`,
		},
	} {
		for _, c := range []struct {
			style  text.Style
			want   string
			suffix string
		}{{text.Line, want.line, "\n"}, {text.Fields, "\n  " + want.fields, "\n"}, {text.JSON, want.json, `,"padding":0}` + "\n"}} {
			var v text.View
			v.Decode(&packets[i])
			got := string((&text.Printer{Style: c.style}).Append(nil, &v))
			if end := strings.ReplaceAll(c.want, "NONCE", nonce) + c.suffix; !strings.HasSuffix(got, end) || v.Malformed != nil {
				t.Errorf("%q, want %q", got, end)
			}
		}
	}
	for _, c := range []struct {
		packet, n int
		want      string
	}{
		{0, 17, "1->2 handshake question cut: 17 of 46 bytes\n"},
		{1, 17, "2->1 handshake challenge cut: 17 of 46 bytes\n"},
		{5, 10, "1->2 sealed 1 key 5 [100 bytes] cut: 10 of 129 bytes\n"},
	} {
		p := packets[c.packet]
		p.Data = p.Data[:c.n]
		var v text.View
		v.Decode(&p)
		if got := string((&text.Printer{}).Append(nil, &v)); !strings.HasSuffix(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
		objectOf(t, string((&text.Printer{Style: text.JSON}).Append(nil, &v)))
	}
}

// TestSealedFilters: they are chosen by ids and addresses, and never by what they carry.
func TestSealedFilters(t *testing.T) {
	for _, p := range sealedPackets(t) {
		var v text.View
		v.Decode(&p)
		for want, f := range map[bool][]text.Filter{
			true: {{}, {IDs: []frame.EndpointID{1}}, {IDs: []frame.EndpointID{2}}},
			false: {
				{IDs: []frame.EndpointID{3}}, {Txns: []uint32{0}}, {Ranges: []text.Range{{Last: 1<<32 - 1}}}, {STags: []uint32{0}},
			},
		} {
			for _, f := range f {
				if f.Match(&v) != want {
					t.Errorf("record %d, %+v: %v", p.Record, f, !want)
				}
			}
		}
	}
}

// TestSealedEngine: of what two endpoints of ours with a key say to each other, all is named.
func TestSealedEngine(t *testing.T) {
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
	keys := &seal.Ring{All: &seal.Key{9}}
	a, err := dgrdma.New(wire, &dgrdma.Config{ID: 1, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	b, err := dgrdma.New(net.Attach(addrs[1], simnet.Config{}), &dgrdma.Config{ID: 2, Memory: memory, AcceptAny: true, Keys: keys})
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
	if err := c.Write(ctx, &dgrdma.Transaction{Segments: []dgrdma.Segment{{Addr: 64, Bytes: make([]byte, 5000)}}}); err != nil {
		t.Fatal(err)
	}
	a.Close() // and its tap: the file is whole

	r, err := captured.NewFileReader(&file, captured.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	var nonce string
	for {
		p, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var v text.View
		v.Decode(p)
		switch o := objectOf(t, string((&text.Printer{Style: text.JSON}).Append(nil, &v))); {
		case o.Handshake != nil:
			if seen[o.Handshake.Is]++; nonce == "" {
				nonce = *o.Handshake.Nonce
			}
			if *o.Handshake.Nonce != nonce {
				t.Errorf("record %d has another nonce: %s, and %s", o.Record, *o.Handshake.Nonce, nonce)
			}
		case o.Sealed != nil && *o.Src == 1:
			if int(o.Sealed.Counter) != seen["there"] {
				t.Errorf("record %d has counter %d, want %d", o.Record, o.Sealed.Counter, seen["there"])
			}
			seen["there"]++
		case o.Sealed != nil:
			seen["back"]++
		default:
			t.Errorf("record %d is no such thing: %+v", o.Record, o)
		}
	}
	if seen["question"] == 0 || seen["challenge"] == 0 || seen["first"] == 0 || seen["second"] == 0 || seen["there"] < 5 || seen["back"] == 0 {
		t.Errorf("%v", seen)
	}
}
