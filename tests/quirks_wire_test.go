package tests

import (
	"testing"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// quirkMessage is a message to be put on the wire by hand.
type quirkMessage struct {
	frame.Message
	data []byte
}

// quirkRaw sends a frame made by hand from c to the double's address.
func quirkRaw(t *testing.T, c transport.Conn, h frame.Header, msgs []quirkMessage) {
	t.Helper()
	quirkRawTo(t, c, rigPeer, h, msgs)
}

func quirkRawTo(t *testing.T, c transport.Conn, to transport.Addr, h frame.Header, msgs []quirkMessage) {
	t.Helper()
	head := c.Caps().Headroom
	buf := make([]byte, head+c.Caps().MTU)
	var w frame.Writer
	w.Init(buf[head:])
	for _, m := range msgs {
		m.Len = uint16(len(m.data))
		copy(w.Add(&m.Message), m.data)
		h.Flags = frame.FlagMessages
	}
	h.Put(buf[head:])
	if _, err := c.Send([]transport.Outgoing{{To: new(to), Buf: buf[:head+w.Len()]}}); err != nil {
		t.Fatal(err)
	}
}
