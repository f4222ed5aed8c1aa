package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/dgrdma/dgrdma/verbs"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// serve opens a host that accepts one peer after the other with the options that are made for it.
func serve(options func(*verbs.Host) *verbs.Options) (*verbs.Host, *verbs.Listener, chan *verbs.QueuePair) {
	host, err := verbs.Open("tcp:127.0.0.1")
	check(err)
	l, err := host.Listen("0")
	check(err)
	pairs := make(chan *verbs.QueuePair, 8)
	go func() {
		defer close(pairs)
		for {
			request, err := l.Accept(context.Background())
			if errors.Is(err, verbs.ErrClosed) {
				return
			}
			check(err)
			qp, err := request.Accept(context.Background(), options(host))
			check(err)
			pairs <- qp
		}
	}()
	return host, l, pairs
}

// One side offers memory and does nothing else; the other one writes into it, and reads it.
func Example() {
	ctx := context.Background()

	// The server registers memory, and tells each peer its key when it accepts.
	server, err := verbs.Open("tcp:127.0.0.1")
	check(err)
	defer server.Close()
	region, err := server.Register(make([]byte, 64<<10), verbs.RemoteRead|verbs.RemoteWrite)
	check(err)
	l, err := server.Listen("0") // any port
	check(err)
	go func() {
		request, err := l.Accept(ctx)
		check(err)
		fmt.Printf("a peer says %q\n", request.Private)
		_, err = request.Accept(ctx, &verbs.Options{Private: region.Key().Bytes()})
		check(err)
	}()

	// The client, usually on another machine.
	client, err := verbs.Open("tcp")
	check(err)
	defer client.Close()
	qp, err := client.Dial(ctx, l.String(), &verbs.Options{Private: []byte("hello")})
	check(err)
	key, err := verbs.ParseKey(qp.Private())
	check(err)
	check(qp.Write(ctx, key, 4096, []byte("written by the peer")))
	back := make([]byte, 19)
	check(qp.Read(ctx, back, key, 4096))
	fmt.Printf("%s\n", back)
	check(qp.Close())

	// Output:
	// a peer says "hello"
	// written by the peer
}

// Many requests are under way at once, and complete in the order in which they were posted.
func ExampleQueuePair_PostList() {
	ctx := context.Background()
	server, l, _ := serve(func(h *verbs.Host) *verbs.Options {
		region, err := h.Register(make([]byte, 4<<10), verbs.RemoteRead|verbs.RemoteWrite)
		check(err)
		return &verbs.Options{Private: region.Key().Bytes()}
	})
	defer server.Close()
	client, err := verbs.Open("tcp")
	check(err)
	defer client.Close()
	qp, err := client.Dial(ctx, l.String(), nil)
	check(err)
	key, err := verbs.ParseKey(qp.Private())
	check(err)

	pages := [4][]byte{[]byte("one"), []byte("two"), []byte("three"), []byte("four")}
	var list []verbs.Work
	for i, page := range pages {
		list = append(list, verbs.Work{Op: verbs.OpWrite, STag: key.STag, TO: key.Offset + uint64(1024*i), Data: page, Silent: true})
	}
	// A Read is answered after all Writes before it are in place.
	got := make([]byte, 3)
	list = append(list, verbs.Work{ID: 7, Op: verbs.OpRead, STag: key.STag, TO: key.Offset + 1024, Data: got})
	_, err = qp.PostList(list)
	check(err)

	done := make([]verbs.Completion, 16)
	n, err := qp.Completions().Wait(ctx, done)
	check(err)
	for i := range done[:n] {
		fmt.Println(&done[i])
	}
	fmt.Printf("%s\n", got)
	// Output:
	// Read 7: 3 bytes
	// two
}

// Messages need receives. The first ones are there before the peer can send.
func ExampleQueuePair_Send() {
	ctx := context.Background()
	inbox := [2][]byte{make([]byte, 100), make([]byte, 100)}
	server, l, pairs := serve(func(*verbs.Host) *verbs.Options {
		return &verbs.Options{Posted: []verbs.Receive{{ID: 0, Data: inbox[0]}, {ID: 1, Data: inbox[1]}}}
	})
	defer server.Close()
	client, err := verbs.Open("tcp")
	check(err)
	defer client.Close()
	qp, err := client.Dial(ctx, l.String(), nil)
	check(err)
	check(qp.Send(ctx, []byte("hello")))
	check(qp.Send(ctx, []byte("goodbye")))
	check(qp.Close())

	peer := <-pairs
	<-peer.Done()
	done := make([]verbs.Completion, 8)
	n := peer.Received().Poll(done)
	for _, c := range done[:n] {
		fmt.Printf("%s\n", inbox[c.ID][:c.Length])
	}
	fmt.Println(errors.Is(peer.Err(), verbs.ErrPeerClosed))
	// Output:
	// hello
	// goodbye
	// true
}

// A window grants a part of a region for a time.
func ExampleRegion_Bind() {
	ctx := context.Background()
	var window *verbs.Window
	server, l, _ := serve(func(h *verbs.Host) *verbs.Options {
		region, err := h.Register(make([]byte, 1<<20), verbs.RemoteRead|verbs.RemoteWrite)
		check(err)
		window, err = region.Bind(4096, 1024, verbs.RemoteRead, nil)
		check(err)
		copy(window.Bytes(), "for a while")
		return &verbs.Options{Private: window.Key().Bytes()}
	})
	defer server.Close()
	client, err := verbs.Open("tcp")
	check(err)
	defer client.Close()
	qp, err := client.Dial(ctx, l.String(), nil)
	check(err)
	key, err := verbs.ParseKey(qp.Private())
	check(err)

	got := make([]byte, 11)
	check(qp.Read(ctx, got, key, 0))
	fmt.Printf("%s\n", got)

	window.Invalidate() // at the server: when it returns, nobody can use the window
	err = qp.Read(ctx, got, key, 0)
	fmt.Println(errors.Is(err, verbs.FaultProtectionSTag), window.Region().Valid())
	// Output:
	// for a while
	// true true
}

// A peer that was granted memory for itself gives it back with its answer.
func ExampleWork_invalidate() {
	ctx := context.Background()
	asked := make([]byte, 100)
	server, l, pairs := serve(func(*verbs.Host) *verbs.Options {
		return &verbs.Options{Posted: []verbs.Receive{{Data: asked}}}
	})
	defer server.Close()
	client, err := verbs.Open("tcp")
	check(err)
	defer client.Close()
	qp, err := client.Dial(ctx, l.String(), &verbs.Options{Posted: []verbs.Receive{{}}})
	check(err)

	// The client asks for something, and says where the answer goes: memory for this connection only.
	answer := make([]byte, 100)
	region, err := client.Domain().Register(answer, verbs.RemoteWrite, &verbs.RegionOptions{Only: qp.Stream()})
	check(err)
	check(qp.Send(ctx, region.Key().Bytes()))

	// The server writes the answer, and has the memory withdrawn by the message that says so.
	peer := <-pairs
	done := make([]verbs.Completion, 1)
	_, err = peer.Received().Wait(ctx, done)
	check(err)
	key, err := verbs.ParseKey(asked)
	check(err)
	check(peer.Write(ctx, key, 0, []byte("forty-two")))
	check(peer.Post(&verbs.Work{Op: verbs.OpSend, Invalidating: true, Invalidate: key.STag}))

	_, err = qp.Received().Wait(ctx, done)
	check(err)
	region.Invalidate() // it is already: this waits for those who are inside
	fmt.Println(done[0].Invalidated, done[0].STag == region.STag(), region.Valid())
	fmt.Printf("%s\n", answer[:9])
	// Output:
	// true true false
	// forty-two
}

// Peers share receives: those who send much take many of them.
func ExampleSharedReceives() {
	ctx := context.Background()
	const depth = 16
	shared := verbs.NewSharedReceives(depth)
	received := verbs.NewCompletionQueue()
	var inbox [depth][]byte
	for i := range inbox {
		inbox[i] = make([]byte, 100)
		check(shared.Post(verbs.Receive{ID: uint64(i), Data: inbox[i]}))
	}
	server, l, _ := serve(func(*verbs.Host) *verbs.Options {
		return &verbs.Options{Shared: shared, Received: received}
	})
	defer server.Close()
	client, err := verbs.Open("tcp")
	check(err)
	defer client.Close()

	done := make([]verbs.Completion, depth)
	for i := range 3 {
		qp, err := client.Dial(ctx, l.String(), nil)
		check(err)
		check(qp.Send(ctx, fmt.Appendf(nil, "this is peer %d", i)))
		n, err := received.Wait(ctx, done)
		check(err)
		for _, c := range done[:n] {
			check(c.Err)
			fmt.Printf("%s; known by its address: %v\n", inbox[c.ID][:c.Length], c.QueuePair().RemoteAddr().String() == qp.LocalAddr().String())
			check(shared.Post(verbs.Receive{ID: c.ID, Data: inbox[c.ID]}))
		}
	}
	fmt.Println(shared.Len(), "receives are posted")
	// Output:
	// this is peer 0; known by its address: true
	// this is peer 1; known by its address: true
	// this is peer 2; known by its address: true
	// 16 receives are posted
}

// What a peer does wrong ends the connection, and both sides know what it was.
func ExampleTerminateError() {
	ctx := context.Background()
	server, l, pairs := serve(func(h *verbs.Host) *verbs.Options {
		region, err := h.Register(make([]byte, 4096), verbs.RemoteRead)
		check(err)
		return &verbs.Options{Private: region.Key().Bytes()}
	})
	defer server.Close()
	client, err := verbs.Open("tcp")
	check(err)
	defer client.Close()
	qp, err := client.Dial(ctx, l.String(), nil)
	check(err)
	key, err := verbs.ParseKey(qp.Private())
	check(err)

	key.Length = 1 << 20 // which is not so
	err = qp.Read(ctx, make([]byte, 100), key, 4000)
	var end *verbs.TerminateError
	fmt.Println(errors.Is(err, verbs.ErrFlushed), errors.As(err, &end))
	fmt.Println("by the peer:", end.Remote)
	fmt.Printf("layer %d, type %d, code %d\n", end.Fault.Layer(), end.Fault.Type(), end.Fault.Code())
	fmt.Println(end.Fault)

	peer := <-pairs
	<-peer.Done()
	fmt.Println("at the peer:", errors.Is(peer.Err(), verbs.FaultProtectionBounds))
	// Output:
	// true true
	// by the peer: true
	// layer 0, type 1, code 1
	// RDMAP: remote protection error: base or bounds violation (0/1/01)
	// at the peer: true
}

// A server may refuse a peer, and say why.
func ExampleRequest_Reject() {
	ctx := context.Background()
	server, err := verbs.Open("tcp:127.0.0.1")
	check(err)
	defer server.Close()
	l, err := server.Listen("0")
	check(err)
	go func() {
		request, err := l.Accept(ctx)
		check(err)
		if string(request.Private) != "sesame" {
			check(request.Reject(ctx, []byte("say sesame")))
		}
	}()
	client, err := verbs.Open("tcp")
	check(err)
	defer client.Close()
	_, err = client.Dial(ctx, l.String(), nil)
	var rejected *verbs.RejectedError
	if errors.As(err, &rejected) {
		fmt.Printf("%s\n", rejected.Private)
	}
	// Output:
	// say sesame
}
