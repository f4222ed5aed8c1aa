package simnet_test

import (
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

func Example() {
	net := simnet.New(1)
	defer net.Close()
	a := net.Attach(simnet.Addr(1), simnet.Config{})
	b := net.Attach(simnet.Addr(2), simnet.Config{})
	net.Link(a.LocalAddr(), b.LocalAddr(), simnet.Link{Latency: time.Millisecond})

	buf := append(make([]byte, a.Caps().Headroom), "hello"...)
	if _, err := a.Send([]transport.Outgoing{{To: new(b.LocalAddr()), Buf: buf}}); err != nil {
		fmt.Println(err)
	}
	datagrams := make([]transport.Datagram, 8)
	n, err := b.Recv(datagrams, transport.Forever)
	fmt.Println(n, err, datagrams[0].From, string(datagrams[0].Data))
	// Output: 1 <nil> 02:00:00:00:00:01 hello
}

func ExampleLink_script() {
	net := simnet.New(1)
	defer net.Close()
	a := net.Attach(simnet.Addr(1), simnet.Config{})
	b := net.Attach(simnet.Addr(2), simnet.Config{})
	net.Link(a.LocalAddr(), b.LocalAddr(), simnet.Link{
		Script: func(i int, _ []byte) simnet.Verdict {
			if i == 1 {
				return simnet.Drop()
			}
			return simnet.Deliver()
		},
	})
	for _, text := range []string{"one", "two", "three"} {
		buf := append(make([]byte, a.Caps().Headroom), text...)
		if _, err := a.Send([]transport.Outgoing{{To: new(b.LocalAddr()), Buf: buf}}); err != nil {
			fmt.Println(err)
		}
	}
	datagrams := make([]transport.Datagram, 8)
	n, _ := b.Recv(datagrams, transport.Forever)
	for _, d := range datagrams[:n] {
		fmt.Println(string(d.Data))
	}
	fmt.Println("lost:", net.LinkStats(a.LocalAddr(), b.LocalAddr()).Lost)
	// Output:
	// one
	// three
	// lost: 1
}
