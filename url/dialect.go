package url

import "fmt"

// Scheme is the wire an endpoint uses. The zero value is no scheme.
type Scheme uint8

const (
	Ether Scheme = iota + 1 // raw Ethernet frames
	UDP                     // UDP over IPv4 or IPv6
)

const (
	protocolEther      = "ocpi-ether-rdma"
	protocolUDP        = "ocpi-udp-rdma"
	protocolAppendix   = "ocpi-ether-l2-rdma"
	protocolEtherShort = "ether"
	protocolUDPShort   = "udp"
)

// String returns the protocol name that starts an endpoint string.
func (s Scheme) String() string {
	switch s {
	case Ether:
		return protocolEther
	case UDP:
		return protocolUDP
	}
	return fmt.Sprintf("Scheme(%d)", uint8(s))
}

// Dialect is a spelling of endpoint strings. The package comment shows each.
type Dialect uint8

const (
	Spec      Dialect = iota // the specification, sections 5.1.3 and 5.2.3
	OpenCPI                  // OpenCPI hosts: ip:port, uuid in the suffix
	Legacy                   // OpenCPI hosts before 2021: ip;port
	Prefixed                 // "Ether:" before the interface: cards, and what datagram2 hosts read
	Datagram2                // what OpenCPI datagram2 hosts write: no address at all
	Appendix                 // the form in section 6 of the specification
	Short                    // what people type for a local endpoint
)

// String returns the name of d in lower case.
func (d Dialect) String() string {
	switch d {
	case Spec:
		return "spec"
	case OpenCPI:
		return "opencpi"
	case Legacy:
		return "legacy"
	case Prefixed:
		return "prefixed"
	case Datagram2:
		return "datagram2"
	case Appendix:
		return "appendix"
	case Short:
		return "short"
	}
	return fmt.Sprintf("Dialect(%d)", uint8(d))
}

// ReadByOpenCPI reports whether OpenCPI's own endpoint code reads d, with its
// mandatory uuid and its limit on the length.
func (d Dialect) ReadByOpenCPI() bool {
	switch d {
	case OpenCPI, Legacy, Prefixed, Datagram2:
		return true
	}
	return false
}

func (d Dialect) etherOnly() bool {
	switch d {
	case Prefixed, Datagram2, Appendix:
		return true
	}
	return false
}
