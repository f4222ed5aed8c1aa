package tap_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net/netip"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/transport/tap"
	udpwire "github.com/dgrdma/dgrdma/transport/udp"
	"github.com/dgrdma/dgrdma/url"
)

// A host of links whose traffic is recorded. Its endpoint was not opened by a string, so
// the one that peers are told is put together here; it needs an id of its own, too.
func Example_link() {
	var file bytes.Buffer // an *os.File outside of tests
	host, err := link.Open("", &link.Config{
		Endpoint: dgrdma.Config{ID: 7},
		Open: func(cfg *dgrdma.Config) (*dgrdma.Endpoint, error) {
			wire, err := udpwire.Listen(udpwire.Config{Addr: netip.MustParseAddrPort("127.0.0.1:0")})
			if err != nil {
				return nil, err
			}
			recorded, err := tap.New(wire, &file, tap.Options{})
			if err != nil {
				return nil, err
			}
			return dgrdma.New(recorded, cfg)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	e := host.Endpoint()
	told := url.Endpoint{Scheme: url.UDP, Addr: e.LocalAddr().AddrPort(), Size: e.Size(), ID: uint16(e.ID()), Max: 65535}.String()

	ctx := context.Background()
	port, err := host.Listen("frames", nil)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		other, err := link.Open("udp:127.0.0.1", nil)
		if err != nil {
			log.Fatal(err)
		}
		defer other.Close()
		out, err := other.Dial(ctx, told, "frames", nil)
		if err != nil {
			log.Fatal(err)
		}
		if err := out.Out.Send(ctx, 0, []byte("hello")); err != nil {
			log.Fatal(err)
		}
		out.Close()
	}()
	in, err := port.Accept(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for m, err := range in.In.Messages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", m.Bytes)
	}
	host.Close() // before the file is read: nothing is recorded any more
	fmt.Println(file.Len() > 100)
	// Output:
	// hello
	// true
}
