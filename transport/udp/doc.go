// Package udp carries frames in UDP datagrams over IPv4 and IPv6. Every datagram
// begins with two bytes of zeros, so that the frame header lies at a multiple of
// four behind the UDP header (specification, section 5.2).
//
//	conn, err := udp.Listen(udp.Config{Addr: netip.MustParseAddrPort("10.0.0.1:7100")})
//	if err != nil {
//		return err
//	}
//	e, err := dgrdma.New(conn, &dgrdma.Config{ID: 1, Memory: memory})
//
// # All addresses
//
// A socket at [::] or 0.0.0.0 is at all addresses of the machine. What it sends to a peer leaves from
// the one that the peer asked, which the kernel tells with each datagram (IP_PKTINFO,
// IPV6_RECVPKTINFO), and which is [transport.Addr.Local] of the peer's address: nothing is kept of it
// elsewhere, so there is no table that strangers could fill. To a peer that is dialed it leaves from
// the address that the system has on the way there then ([Conn.Towards]); when that is gone, what
// is sent to the peer is lost, and nothing else. What was sent to a group or by broadcast counts as
// foreign, and is not answered. [Addresses] lists by which addresses peers reach the socket.
//
// # One peer
//
// A socket that has one peer only ([Conn.Focus]) is connected to it, which spares the kernel the
// look for a route and the address of ours with each datagram: a tenth of a round trip. One at all addresses, or at one of IPv6,
// keeps its first socket beside a second one that is connected, at the same port. It goes on with
// the first when it has other peers, or may have. An error that the kernel tells a connected socket is that of another
// datagram than the one at hand, or an invention; so what failed is tried once more.
//
// # Offload
//
// Where the kernel can, runs of equally long frames leave as one message that it
// cuts up (UDP_SEGMENT), and frames that arrived together come as one (UDP_GRO).
// If a device refuses in mid-flight, the frames leave one by one from then on: if it takes the first
// frame of a run that it refused. What it refuses alone as well, only that peer does not get.
//
// # Frame size
//
// Datagrams are never fragmented. The frame size is what the interface of the
// local address carries, or less where the routing table or the interface by which
// the peer is reached says so; at all addresses that alone counts. ICMP reports of a narrower link further away are not
// believed, since anyone can send them: one of 56 bytes would stop a flow. Where
// such a link may be, which [Conn.MayNarrow] says of all ways to other machines, the engine
// asks a peer of our own kind which frames arrive. For others set Config.MTU, which is taken at
// its word, or the route's: ip route change ... mtu 1400.
//
// # Buffers
//
// Datagrams that find the socket's receive buffer full are lost, and the engine
// sends them again. So the buffers are made as large as the system allows; what
// it granted is in [Conn.Buffers], and what it dropped in the counter
// KernelDrops. The limit for users without CAP_NET_ADMIN is the system's
// net.core.rmem_max.
//
// The kernel keeps what is sent to a neighbour who does not answer in the send
// buffer, for seconds. When a good part of it is in use, Send asks who is being
// looked for, and what is for him is lost at once, so that others are served. It
// waits for room as long as room comes; when for 100 ms nothing leaves the buffer,
// what does not fit is lost.
//
// # Errors
//
// Listen tells what it tried, what was wrong, and what to do. What the system
// refuses later for a passing reason (no route, a full queue, a firewall, nobody
// there), and what finds no room, counts as sent and in SendDrops.
//
// That nobody has a port (ICMP port unreachable) is not asked for. With IP_RECVERR the kernel would fail
// the next send for each such report, to whichever peer, on a socket that is connected to none too, and anyone can
// invent one who knows our port; and one of a narrower path would look like a device that refuses runs.
package udp
