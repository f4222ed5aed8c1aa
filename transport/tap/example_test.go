package tap_test

import (
	"bytes"
	"fmt"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/tap"
)

func Example() {
	net := simnet.New(1)
	defer net.Close()
	var file bytes.Buffer // an *os.File outside of tests
	c, err := tap.New(net.Attach(simnet.Addr(1), simnet.Config{}), &file, tap.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	buf := append(make([]byte, c.Caps().Headroom), "hello"...)
	if _, err := c.Send([]transport.Outgoing{{To: new(simnet.Addr(2)), Buf: buf}}); err != nil {
		fmt.Println(err)
	}
	c.Close()
	fmt.Println(file.Len(), "bytes recorded, error:", c.Err())
	// 24 for the file, 16 for the record, 14 for Ethernet, and the frame.

	// Output: 59 bytes recorded, error: <nil>
}
