// Package rping speaks the protocol of rping, the program of rdma-core that shows that two hosts can do RDMA, as its client and as
// its server, over package verbs. The other side may be rping itself on an iWARP NIC or on Linux's siw.
//
//	c, err := rping.Dial(ctx, host, "tcp:10.0.0.2:7174", 64, nil)
//	data, err := c.Ping(ctx)
//	err = c.Close(ctx)
//
// and at the other side
//
//	request, err := listener.Accept(ctx)
//	s, err := rping.Accept(ctx, request, nil)
//	for err == nil {
//		data, err = s.Pong(ctx)
//	}
//	if err == io.EOF { // the client has said good-bye
//		err = s.Close(ctx)
//	}
//
// # One ping
//
// The client fills its source buffer and tells the server where it is, with a Send of a [verbs.Key]. The server Reads it, and says go
// ahead, with a Send of 16 zero bytes. The client tells where its sink is; the server Writes there what it has read, up to the zero byte
// that ends it, and says go ahead again. The client compares. Who is through closes the connection. Private data is not used, and one
// Read at a time each way is asked for.
//
// # Data
//
// Ping n is "rdma-ping-n: " and then characters from the one with code 65+n%58 on, up to 122 and from 65 again, and a zero byte at the
// end ([Fill]). So a server knows as well what it should have read, and [Session.Pong] checks that too, which rping's does not.
//
// # Waiting
//
// With [Options.Wait] a peer whose next word does not come within it is [ErrSilent], and then, as when the context of a call ends, the connection is of no
// use any more.
package rping
