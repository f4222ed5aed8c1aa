// Package url parses and formats endpoint strings: the text that tells one
// DG/RDMA endpoint how to reach another.
//
// An endpoint string names a protocol, says where the endpoint is, and ends in
// a suffix with the size of the endpoint's memory, its endpoint id and the
// number of endpoint ids in use. The specification defines one spelling for
// Ethernet and one for UDP. Deployed OpenCPI software and cards use others.
// Parse accepts all of them and remembers which one it saw:
//
//	Dialect    Text
//	Spec       ocpi-ether-rdma:<interface>/<mac>;<size>.<id>.<max>
//	           ocpi-udp-rdma:<ip>;<port>;<size>.<id>.<max>
//	OpenCPI    ocpi-ether-rdma:<interface>/<mac>;<uuid>.<size>.<id>.<max>
//	           ocpi-udp-rdma:<ip>:<port>;<uuid>.<size>.<id>.<max>
//	Legacy     ocpi-udp-rdma:<ip>;<port>;<uuid>.<size>.<id>.<max>
//	Prefixed   ocpi-ether-rdma:Ether:<interface>/<mac>;<uuid>.<size>.<id>.<max>
//	Datagram2  ocpi-ether-rdma:;<uuid>.<size>.<id>.<max>
//	Appendix   ocpi-ether-l2-rdma:<mac>:<size>.<id>.<max>
//	Short      udp   udp:<port>   udp:<ip>   udp:<ip>:<port>
//	           ether:<interface>   ether:<interface>/<mac>   ether:<mac>
//
// Parse is more liberal than any one reader of these dialects:
//
//   - In all but Short the suffix may be missing: the endpoint is incomplete,
//     as a card is before its host completes it. A protocol name alone, or
//     followed by ':' only, is an incomplete OpenCPI endpoint.
//   - The uuid may be present or absent in every suffix but that of Appendix.
//     `ip;port` with a uuid is Legacy, `ip:port` without one is still OpenCPI.
//   - "Ether:" may be in upper or lower case.
//   - <interface>/<mac> may be the <mac> alone.
//   - <ip> is an IPv4 address, or an IPv6 address in brackets with an optional
//     zone: [fe80::1%eth0]. An IPv4-mapped IPv6 address becomes IPv4.
//   - In place of <ip> there may be the name of a host: labels of letters, digits, '-' and
//     '_' with '.' between them, of which the last one is no number. It is kept as it is;
//     this package looks nothing up.
//   - The UDP port may be missing, which means 0, as legacy software leaves it
//     out after a dynamic bind.
//
// A Short string is what a person types for a local endpoint. It has no suffix.
// `udp` leaves address and port to who opens it, `udp:7100` is that port at all addresses of
// the machine, IPv4 and IPv6, as `udp:[::]:7100` is; `udp:0.0.0.0:7100` is at those of IPv4. None of
// these is a string for a peer.
//
// # Values
//
//	<size>       1 to 4294967296, bytes
//	<id>         1 to 65535, and at most <max> unless <max> is 0
//	<max>        0 to 65535; 0 leaves the number of endpoint ids open
//	<port>       0 to 65535; 0 leaves the choice to the system
//	<mac>        six fields of two hexadecimal digits, separated by ':'
//	<uuid>       8-4-4-4-12 hexadecimal digits, kept in the case they came in
//	<interface>  any bytes but control characters, space, '/', ':', ';' and '?'
//
// Numbers are decimal without sign and without leading zeros. An id equal to
// <max> is accepted because OpenCPI counts mailboxes from 1 to <max>; its C++
// hosts index arrays of ten elements with it, so hand them an id below ten, and
// [OpenCPIIDs] as <max>: Format does.
//
// # Options
//
// Any string may end in options for this module:
//
//	udp:7100?mtu=9000&profile=fpga
//
// Keys and values are printable ASCII; every other byte, '%' and '&', and '='
// in a key, are written as '%' and two hexadecimal digits. '+' stands for
// itself. A key occurs once. Options are local: [Endpoint.Format] leaves them
// out of every dialect a peer may read.
//
// # Formatting
//
// [Endpoint.String] writes an endpoint in the dialect it has, with everything
// that dialect says, and never fails. For any string s that Parse accepts,
//
//	e, _ := url.Parse(s)
//	again, _ := url.Parse(e.String()) // again == e
//
// [Endpoint.Format] writes what real readers of a dialect accept, and refuses
// what they do not: OpenCPI readers require a uuid, know no IPv6 and no names, and take at
// most 255 bytes.
//
// Endpoint, MAC and Options are values: compare them with ==, copy them freely,
// and use them as map keys.
//
// # Errors
//
// Parse fails with an [*Error], which has the byte offset of the first byte
// that does not fit and says what was expected there. Format fails with a
// [*FormatError]. An input of more than MaxLength bytes is refused.
package url
