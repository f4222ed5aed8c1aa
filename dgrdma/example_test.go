package dgrdma_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

var addrA, addrB = simnet.Addr(1), simnet.Addr(2)

// twoEndpoints connects an endpoint that only sends to one with memory.
func twoEndpoints(network *simnet.Network, size int) (toB *dgrdma.Conn, memory *dgrdma.Region, closeBoth func()) {
	memory, err := dgrdma.NewRegion(size)
	if err != nil {
		log.Fatal(err)
	}
	a, err := dgrdma.New(network.Attach(addrA, simnet.Config{}), &dgrdma.Config{ID: 1})
	if err != nil {
		log.Fatal(err)
	}
	b, err := dgrdma.New(network.Attach(addrB, simnet.Config{}), &dgrdma.Config{ID: 2, Memory: memory})
	if err != nil {
		log.Fatal(err)
	}
	if toB, err = a.Connect(dgrdma.Peer{ID: 2, Addr: addrB, Size: memory.Size()}); err != nil {
		log.Fatal(err)
	}
	if _, err = b.Connect(dgrdma.Peer{ID: 1, Addr: addrA}); err != nil {
		log.Fatal(err)
	}
	return toB, memory, func() { a.Close(); b.Close() }
}

// One endpoint writes into the memory of another, which waits for the
// completion word.
func Example() {
	network := simnet.New(1)
	defer network.Close()
	network.Link(addrA, addrB, simnet.Link{Loss: 0.2}) // repaired, not noticed
	toB, memory, closeBoth := twoEndpoints(network, 1<<16)
	defer closeBoth()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	go toB.Write(ctx, &dgrdma.Transaction{
		Segments:   []dgrdma.Segment{{Addr: 4096, Bytes: []byte("hello, memory")}},
		Completion: dgrdma.Word(0, 13),
	})
	n, err := memory.Wait(ctx, 0, func(word uint32) bool { return word != 0 })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", memory.Bytes()[4096:4096+n])
	// Output: hello, memory
}

// Write returns when the peer has acknowledged all of the transaction.
func ExampleConn_Write() {
	network := simnet.New(1)
	defer network.Close()
	toB, memory, closeBoth := twoEndpoints(network, 1<<16)
	defer closeBoth()

	err := toB.Write(context.Background(), &dgrdma.Transaction{
		Segments: []dgrdma.Segment{
			{Addr: 100, Bytes: []byte("scattered ")},
			{Addr: 200, Bytes: []byte("data")},
		},
		Completion: dgrdma.Word(8, 1),
	})
	fmt.Println(err, memory.Load32(8), string(memory.Bytes()[100:110])+string(memory.Bytes()[200:204]))

	err = toB.Write(context.Background(), &dgrdma.Transaction{
		Segments: []dgrdma.Segment{{Addr: 1 << 16, Bytes: []byte("beyond")}},
	})
	fmt.Println(err)
	// Output:
	// <nil> 1 scattered data
	// dgrdma: address outside the memory: segment 0 of a post to peer 2: 6 bytes at 0x10000 end at 0x10006, the memory at 0x10000
}

// A completion queue collects what is done, for programs that would rather ask
// than be called.
func ExampleCompletionQueue() {
	network := simnet.New(1)
	defer network.Close()
	toB, memory, closeBoth := twoEndpoints(network, 1<<16)
	defer closeBoth()

	queue := dgrdma.NewCompletionQueue(4)
	for i := range 4 {
		t := &dgrdma.Transaction{Completion: dgrdma.Word(uint32(4*i), uint32(i+1)), Cookie: i}
		if err := queue.Post(toB, t); err != nil {
			log.Fatal(err)
		}
	}
	done := make([]dgrdma.Completion, 4)
	for finished := 0; finished < 4; {
		n, err := queue.Wait(context.Background(), done)
		if err != nil {
			log.Fatal(err)
		}
		finished += n
	}
	fmt.Println(memory.Load32(0), memory.Load32(4), memory.Load32(8), memory.Load32(12))
	// Output: 1 2 3 4
}
