package dgrdma_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// mailboxes gives each peer a memory of its own, which it fills from the start.
type mailboxes struct{ size int }

func (mailboxes) Admit(dgrdma.EndpointID, *dgrdma.Message) ([]byte, error) {
	return nil, dgrdma.Swallow(dgrdma.ErrBounds)
}
func (mailboxes) Complete(dgrdma.EndpointID, *dgrdma.Message) {}

// For implements [dgrdma.PerConn].
func (m mailboxes) For(*dgrdma.Conn) dgrdma.Memory {
	region, err := dgrdma.NewRegion(m.size)
	if err != nil {
		log.Fatal(err)
	}
	return &mailbox{Region: region}
}

// mailbox counts what arrived in it.
type mailbox struct {
	*dgrdma.Region
	bytes atomic.Int64
}

// Placed implements [dgrdma.Placed].
func (m *mailbox) Placed(src dgrdma.EndpointID, msg *dgrdma.Message) {
	m.bytes.Add(int64(msg.Len))
	m.Region.Placed(src, msg)
}

// A program that has memory and events of its own, looks at frames, chooses what kind of
// peer it speaks to, and says which one failed, imports this package alone.
func Example_oneImport() {
	up := make(chan dgrdma.PeerName, 1)
	var frames atomic.Int64
	b, err := dgrdma.Open("ocpi-udp-rdma:127.0.0.1;0;4096.2.9", &dgrdma.Config{
		Memory: mailboxes{4096}, AcceptAny: true,
		OnEvent: func(e dgrdma.Event) {
			if e.Kind == dgrdma.PeerUp {
				up <- e.Peer
			}
		},
		Trace: &dgrdma.Trace{FrameReceived: func(_ dgrdma.PeerName, f []byte, why dgrdma.Reason) {
			if why == dgrdma.RefusedNone && len(f) > 0 {
				frames.Add(1)
			}
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	a, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{ID: 7})
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	profile := dgrdma.Native()
	profile.Window = 64
	toB, err := a.Connect(dgrdma.Peer{ID: b.ID(), Addr: dgrdma.UDPAddr(b.LocalAddr().AddrPort()), Size: 4096, Profile: &profile})
	if err != nil {
		log.Fatal(err)
	}
	err = toB.Write(context.Background(), &dgrdma.Transaction{
		Segments:   []dgrdma.Segment{{Addr: 100, Bytes: []byte("hello")}},
		Completion: dgrdma.Word(0, 1),
	})
	box := b.Conns()[0].Memory().(*mailbox)
	fmt.Println(err, (<-up).ID, box.bytes.Load(), box.Load32(0), frames.Load() > 0)

	nobody := dgrdma.UDPAddr(netip.MustParseAddrPort("127.0.0.1:9"))
	lost, err := a.Connect(dgrdma.Peer{ID: 3, Addr: nobody})
	if err != nil {
		log.Fatal(err)
	}
	answer := make(chan error, 1)
	post := &dgrdma.Transaction{Completion: dgrdma.Word(0, 1), Done: func(_ *dgrdma.Transaction, err error) { answer <- err }}
	if err := lost.Post(post); err != nil {
		log.Fatal(err)
	}
	if err := lost.Reset(dgrdma.Seq(0)); err != nil {
		log.Fatal(err)
	}
	err = <-answer
	var failed *dgrdma.PeerError
	fmt.Println(errors.Is(err, dgrdma.ErrReset), errors.As(err, &failed) && failed.ID == 3 && failed.Addr == nobody)
	// Output:
	// <nil> 7 5 1 true
	// true true
}
