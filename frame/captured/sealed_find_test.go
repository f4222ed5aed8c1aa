package captured

import (
	"bytes"
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/seal/datagram"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// TestSealedInquiry: all is found, without ports, of what an endpoint with a key says to ask who is at an address, and is answered.
func TestSealedInquiry(t *testing.T) {
	net := simnet.New(1)
	defer net.Close()
	at := func(s string) transport.Addr { return transport.UDPAddr(netip.MustParseAddrPort(s)) }
	asks, asked := at("10.0.0.1:7100"), at("10.0.0.2:7100")
	var file bytes.Buffer
	wire, err := tap.New(net.Attach(asks, simnet.Config{MTU: 1472}), &file, tap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	memory, err := dgrdma.NewRegion(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	keys := &seal.Ring{All: &seal.Key{4}}
	a, err := dgrdma.New(wire, &dgrdma.Config{ID: 1, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	b, err := dgrdma.New(net.Attach(asked, simnet.Config{MTU: 1472}), &dgrdma.Config{ID: 9, Memory: memory, AcceptAny: true, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	p, err := a.Find(ctx, dgrdma.Peer{Addr: asked})
	if err != nil || p.ID != 9 {
		t.Fatalf("%+v, %v", p, err)
	}
	a.Close() // and its tap: the file is whole
	all, stats, err := readAll(file.Bytes(), Options{})
	if err != nil || stats.Other > 0 || stats.Packets != stats.Records {
		t.Fatalf("%+v, %v", stats, err)
	}
	kinds := map[datagram.Kind]int{}
	for _, p := range all {
		if h, _ := p.Header(); h.Dst != 0 && h.Src != 0 {
			t.Errorf("record %d is between %d and %d", p.Record, h.Src, h.Dst)
		}
		kinds[p.Seal()]++
	}
	if len(kinds) != 5 || kinds[datagram.Plain] > 0 {
		t.Errorf("%v", kinds)
	}
}
