// Package netconn makes net.Conn and net.Listener of links, so that what speaks over TCP
// in Go speaks over DG/RDMA: net/http, crypto/tls, net/rpc, gRPC.
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
// An address is an endpoint string, a colon, and the name of a port, which may be any of up
// to 64 bytes without a colon. [Dialer].Lookup has names in place of endpoint strings, which
// URLs have no room for:
//
//	d.Lookup = func(ctx context.Context, name string) (string, error) { return endpoints[name], nil }
//	client := http.Client{Transport: &http.Transport{DialContext: d.DialContext}}
//	client.Get("http://camera/") // dials camera:80
//
// # What is like TCP
//
// Deadlines, Close and CloseWrite do what those of a net.TCPConn do, at any time and from
// any goroutine. Close does not wait: what was written before it arrives, and end of file
// behind it, also if the peer does not read; what the peer does not acknowledge within its
// host's GiveUp is lost. The program has to stay for that: link.Host.Shutdown waits until all
// has arrived, Host.Close does not.
//
// Errors are a [*net.OpError]. What happened is in it twice: as package link says it, and as
// a program knows it that was written for TCP:
//
//	link.ErrClosed            net.ErrClosed
//	link.ErrRefused           syscall.ECONNREFUSED
//	dgrdma.ErrWrongID         likewise
//	link.ErrNoAnswer          os.ErrDeadlineExceeded, and Timeout says true
//	link.ErrPeerClosed        syscall.EPIPE to who writes, ECONNRESET to who reads what never comes
//	dgrdma.ErrPeerDown        syscall.ETIMEDOUT, and Timeout says true
//	dgrdma.ErrPeerRestarted   syscall.ECONNRESET
//
// # What is not
//
// Dial waits until the listener accepts. It takes a round trip, and up to two milliseconds more
// when others between the same hosts begin or end just then, because each letter about a link
// waits until the one before is acknowledged. That a silent peer is gone is noticed within one and
// a half times the host's GiveUp, without keep-alives. Close with data that was not read
// does not reset the connection: the peer reads what it was sent, and end of file. There is
// no ReadFrom: while that waited for its reader nobody else could write.
//
// Each Write takes a buffer of the peer at least: who writes a few bytes at a time does
// better with a bufio.Writer, as net/http has.
//
// A host with dgrdma.Config.Manual moves nothing but while somebody waits in it, in Read as in
// Write: what Write and Close leave under way waits for that, too.
//
// There is no authentication and no encryption but what dgrdma.Config.Keys of the hosts or crypto/tls add.
//
// # Memory
//
// A connection takes [DefaultBuffers] buffers of [DefaultSize] bytes of its host's memory,
// until this side has closed it, and 15 KiB of the heap; what it sends takes up to twice its
// length of the heap until it is acknowledged, and at most what link.Config.Memory says. Where few connections carry much, Buffers and
// Size of [Options] are worth raising. A host whose memory is used up refuses who dials:
// link.Config.Memory bounds how many connections there are at a time, by default about 280.
package netconn
