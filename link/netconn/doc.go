// Package netconn makes net.Conn and net.Listener of links, so that Go programs that speak over TCP
// can speak over DG/RDMA: net/http, crypto/tls, net/rpc, gRPC.
//
//	host, err := link.Open("udp:7100", nil)
//	l, err := netconn.Listen(host, "80", nil)
//	http.Serve(l, handler)
//
// and elsewhere:
//
//	host, err := link.Open("udp", nil)
//	d := &netconn.Dialer{Host: host}
//	c, err := d.Dial(netconn.Network, "udp:10.0.0.2:7100:80")
//
// An address is an endpoint string, a colon, and the name of a port. The name may have up to 64 bytes,
// none of them a colon. URLs have no room for endpoint strings: with [Dialer].Lookup they have names
// in their place:
//
//	d.Lookup = func(ctx context.Context, name string) (string, error) { return endpoints[name], nil }
//	client := http.Client{Transport: &http.Transport{DialContext: d.DialContext}}
//	client.Get("http://camera/") // dials camera:80
//
// # What is like TCP
//
// Deadlines, Close and CloseWrite do what those of a net.TCPConn do, at any time and from any
// goroutine. Close does not wait: what was written before it arrives, and end of file after it, also
// if the peer does not read. What the peer does not acknowledge within its host's GiveUp is lost. The
// program has to stay for that: link.Host.Shutdown waits until all has arrived, Host.Close does not.
//
// Errors are a [*net.OpError]. It holds the error of package link, and the one that TCP would have:
//
//	link.ErrClosed            net.ErrClosed
//	link.ErrRefused           syscall.ECONNREFUSED
//	dgrdma.ErrWrongID         the same
//	dgrdma.ErrRefused         the same
//	link.ErrNoAnswer          os.ErrDeadlineExceeded, and Timeout says true
//	link.ErrPeerClosed        syscall.EPIPE of Write, ECONNRESET of a Read for what never comes
//	dgrdma.ErrPeerDown        syscall.ETIMEDOUT, and Timeout says true
//	dgrdma.ErrPeerRestarted   syscall.ECONNRESET
//
// # What is not
//
// Dial waits until the listener accepts. That takes a round trip, and another one where the hosts have
// not met before. Up to 64 links between the same hosts begin or end in one round trip. A silent peer that is gone is noticed within one and a half times
// the host's GiveUp, without keep-alives. Close with data that was not read does not reset the
// connection: the peer reads what it was sent, and end of file. There is no ReadFrom: while it waited
// for its reader no other goroutine could write.
//
// Each Write takes at least one of the peer's buffers. A program that writes a few bytes at a time
// does better with a bufio.Writer, as net/http has.
//
// A host with dgrdma.Config.Manual moves data only while a goroutine waits in it, in Read as in Write.
// What Write and Close leave in flight waits for that, too.
//
// There is no authentication and no encryption but what dgrdma.Config.Keys of the hosts or crypto/tls
// add.
//
// # Memory
//
// A connection takes [DefaultBuffers] buffers of [DefaultSize] bytes of its host's memory, until this
// side has closed it, and 15 KiB of the heap. On a path with a round trip above 4 ms that it fills it takes
// more: up to 16 MiB, and a quarter of what the host has free. What it sends takes up to twice its length of the heap
// until it is acknowledged, and at most what link.Config.Memory says. A host whose memory is used up refuses
// connections. link.Config.Memory bounds how many there are at a time: about 280 by default.
package netconn
