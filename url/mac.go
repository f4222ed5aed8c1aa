package url

import "fmt"

// MAC is an Ethernet address. The zero value is none; the all-zero address, which the
// loopback interface has, is another value.
type MAC struct {
	octets [6]byte
	set    bool
}

// MACFrom6 returns the address with these octets, in the order of transmission.
func MACFrom6(octets [6]byte) MAC { return MAC{octets: octets, set: true} }

// IsValid reports whether m is an address.
func (m MAC) IsValid() bool { return m.set }

// As6 returns the octets of m, all zero if m is not an address.
func (m MAC) As6() [6]byte { return m.octets }

// String returns m like 02:00:5e:10:00:01, or "" if m is not an address.
func (m MAC) String() string {
	if !m.set {
		return ""
	}
	o := m.octets
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", o[0], o[1], o[2], o[3], o[4], o[5])
}
